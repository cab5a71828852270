"""Errors of kvfence, by who is at fault, and the one way to check an invariant.

    KvfenceError
    ├── CallerError      the client of the API sent something that cannot be served (4xx)
    ├── OperatorError    flags, config, files or the machine do not allow what was asked (exit 2)
    ├── PeerError        another node said or did what the protocol forbids; it is fenced, not trusted
    └── InternalError    ours: a law or an invariant does not hold
        └── InvariantError

Every error says what happened, why, and what to do about it.
"""

from typing import NoReturn


class KvfenceError(Exception):
    """Root of every error that kvfence raises on purpose."""


class CallerError(KvfenceError):
    """A client asked for something that cannot be served."""


class OperatorError(KvfenceError):
    """The operator's flags, files or machine do not allow what was asked."""


class PeerError(KvfenceError):
    """Another node broke the protocol."""


class InternalError(KvfenceError):
    """kvfence itself is wrong."""


class InvariantError(InternalError):
    """A condition that holds by design does not hold."""


def invariant(condition: object, why: str) -> None:
    """Raise InvariantError(why) unless `condition` is true. Unlike assert it survives `python -O`."""
    if not condition:
        raise InvariantError(why)


def unreachable(why: str) -> NoReturn:
    """Mark a place that no execution reaches."""
    raise InvariantError(why)
