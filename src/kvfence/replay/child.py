"""The first moment of a deployment's launcher: its life is tied to the replay's, then it becomes `kvfence`.

    python -m kvfence.replay.child PARENT-PID WORDS-FOR-PYTHON …

The kernel remembers the tie across the exec, so that a replay that is killed takes its deployment with it,
whatever it was doing.
"""

import os
import sys
from collections.abc import Sequence

from kvfence.serving.node_main import die_with


def main(arguments: Sequence[str]) -> None:
    """Become Python with these words; does not return."""
    parent_pid, *words = arguments
    die_with(int(parent_pid))
    os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 -- there is no shell to want


if __name__ == "__main__":
    main(sys.argv[1:])
