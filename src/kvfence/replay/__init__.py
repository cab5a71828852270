"""The incident in four acts, on the real engine: the numbers, the leak, the fence, the fix.

It plays on deployments of its own, on loopback, with made-up data, and takes them down again. Importing the
package imports none of its parts: they need numpy and the serving packages.
"""

from typing import TYPE_CHECKING

from kvfence.lazy import on_first_use

if TYPE_CHECKING:
    from kvfence.replay.acts import Act
    from kvfence.replay.numbers import Sizes
    from kvfence.replay.run import ReplaySettings, replay
    from kvfence.replay.scene import INCIDENT
    from kvfence.replay.secret import Secret

__all__ = ["INCIDENT", "Act", "ReplaySettings", "Secret", "Sizes", "replay"]

_HOMES = {
    "INCIDENT": "scene",
    "Act": "acts",
    "ReplaySettings": "run",
    "Secret": "secret",
    "Sizes": "numbers",
    "replay": "run",
}

__getattr__ = on_first_use(__name__, _HOMES)
