"""The deployments of one replay: each is started while the one before is played, and all are taken down.

Rules it keeps: whatever happens, no process and no file of theirs is left when the fleet is closed. One that
is no longer needed is told to stop at once, and is waited for at the end, so that nobody waits for it.

All are started by the thread that closes them (see `deployment.py`).
"""

import contextlib
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from kvfence.protocol.errors import invariant
from kvfence.replay.deployment import Deployment, Say

Flags = tuple[str, ...]


class Fleet:
    """Deployments by their flags. Use as a context."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start nothing yet."""
        self._environment = environment
        self._stack = contextlib.ExitStack()
        self._started: dict[Flags, Deployment] = {}

    def start(self, flags: Flags) -> Deployment:
        """Start a deployment with these flags, unless it was started ahead."""
        if flags not in self._started:
            self._started[flags] = self._stack.enter_context(Deployment(flags, self._environment))
        return self._started[flags]

    def ready(self, flags: Flags, say: Say) -> Deployment:
        """Return the deployment once it serves."""
        return self.start(flags).wait_ready(say)

    def retire(self, flags: Flags) -> None:
        """Tell a deployment to stop, without waiting for it."""
        deployment = self._started.pop(flags, None)
        invariant(deployment is not None, "a deployment is retired once, after it was started")
        if deployment is not None:
            deployment.begin_stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # All are told before the first is waited for.
        for deployment in self._started.values():
            deployment.begin_stop()
        self._stack.close()
