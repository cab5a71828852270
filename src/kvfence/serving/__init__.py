"""The processes of a deployment: API, router, nodes, launcher.

What the command line needs is listed here; the rest belongs to the processes themselves. Importing the
package imports none of them: the names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from kvfence.lazy import on_first_use

if TYPE_CHECKING:
    from kvfence.serving.banner import StartView
    from kvfence.serving.config import KEY_OF_FIELD, ServeConfig, load_config
    from kvfence.serving.config_rules import FIT
    from kvfence.serving.launcher import Surroundings, serve
    from kvfence.serving.model_source import find_model
    from kvfence.serving.placement import usable_cpus
    from kvfence.serving.plan import Machine

__all__ = [
    "FIT",
    "KEY_OF_FIELD",
    "Machine",
    "ServeConfig",
    "StartView",
    "Surroundings",
    "find_model",
    "load_config",
    "serve",
    "usable_cpus",
]

_HOMES = {
    "FIT": "config_rules",
    "KEY_OF_FIELD": "config",
    "Machine": "plan",
    "ServeConfig": "config",
    "StartView": "banner",
    "Surroundings": "launcher",
    "find_model": "model_source",
    "load_config": "config",
    "serve": "launcher",
    "usable_cpus": "placement",
}

__getattr__ = on_first_use(__name__, _HOMES)
