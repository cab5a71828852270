"""Transports: how pages cross from a prefill to a decode node, and what proves that no more will come.

Base (the interface and its rules), shm (one machine, shared memory), tcp (several machines).
"""

from collections.abc import Callable
from difflib import get_close_matches

from kvfence.protocol.errors import OperatorError
from kvfence.transport.base import (
    BATCHES_QUEUED_MAX,
    SECRET_BYTES_MIN,
    TRAILER_BYTES,
    WRITERS_MAX,
    BatchLost,
    BatchWritten,
    Completion,
    CutResult,
    Denial,
    Loss,
    PageReceiver,
    PageWriter,
    Transport,
    TransportError,
    Wake,
    WriteBatch,
    WriterDenied,
)
from kvfence.transport.shm import ShmTransport
from kvfence.transport.tcp import TcpTransport

TRANSPORTS: dict[str, Callable[[], Transport]] = {"shm": ShmTransport, "tcp": TcpTransport}


def make_transport(name: str) -> Transport:
    """The transport of that name, with its default settings. Raises OperatorError for an unknown name."""
    factory = TRANSPORTS.get(name)
    if factory is None:
        close = get_close_matches(name, TRANSPORTS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? " if close else ""
        raise OperatorError(f"there is no transport {name!r}: {hint}choose one of {', '.join(TRANSPORTS)}")
    return factory()


__all__ = [
    "BATCHES_QUEUED_MAX",
    "SECRET_BYTES_MIN",
    "TRAILER_BYTES",
    "TRANSPORTS",
    "WRITERS_MAX",
    "BatchLost",
    "BatchWritten",
    "Completion",
    "CutResult",
    "Denial",
    "Loss",
    "PageReceiver",
    "PageWriter",
    "ShmTransport",
    "TcpTransport",
    "Transport",
    "TransportError",
    "Wake",
    "WriteBatch",
    "WriterDenied",
    "make_transport",
]
