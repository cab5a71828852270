"""The prefill node's table: what can happen to a lease that it writes.

Rules: writes are posted in COMPUTING and SENDING alone; Closed is said in CLOSING alone, once, when no
write can land any more; only QUIET leads from CLOSING to ABSENT, and only there source pages and pins
are given back. What was said about a lease is remembered beyond its record (`memory.py`), so that a
Prefill that arrives late is refused in ABSENT.
"""

from enum import Enum, unique
from typing import Final

from kvfence.protocol.rows import Row


@unique
class PrefillState(Enum):
    """State of a lease on its writer."""

    ABSENT = "absent"
    COMPUTING = "computing"  # chunks are computed, pages are posted as they complete
    SENDING = "sending"  # the prompt is computed; writes are posted or in flight
    CLOSING = "closing"  # nothing more is posted; a write or a step may be left


@unique
class PrefillFact(Enum):
    """What an event means for a lease."""

    PREFILL_FITS = "prefill: it fits"
    PREFILL_REFUSED = "prefill: refused"
    PREFILL_LATE = "prefill: the lease is closed"
    PREFILL_AGAIN = "prefill: repeated"
    PREFILL_OTHER = "prefill: another attempt for the same lease"
    CHUNK = "chunk computed"
    LAST_CHUNK = "last chunk computed"
    CHUNK_WRONG = "chunk computed: impossible counts"
    EXECUTOR_FAILED = "executor failed"
    WRITTEN = "batch written"
    WRITE_FAILED = "batch given up"
    WRITE_DROPPED = "batch given up, proven quiet"
    WRITE_STRAY = "batch unknown"
    BATCH_DEADLINE = "posting bound passed"
    CONNECTION_FAILED = "another write on the connection was given up"
    DESTROYED = "connection destroyed"
    RECONNECTED = "connection renewed"
    CLOSE = "close"
    ABORT = "abort"
    FORGOTTEN = "below the lowest live lease"
    ROUTER_LOST = "router lost or superseded"
    DECODE_LOST = "decode lost or superseded"
    LAUNCHED = "step launched"
    RETIRED = "step retired"
    ALL_WRITTEN = "every write completed"
    POSTS_QUIET = "no write can land any more"
    QUIET = "quiet: no write and no step reads the pages"


_S = PrefillState
_F = PrefillFact

_ABSENT = {
    _F.PREFILL_FITS: Row(_S.COMPUTING, "start"),
    _F.PREFILL_REFUSED: Row(_S.ABSENT, "refuse"),
    _F.PREFILL_LATE: Row(_S.ABSENT, "answer_again"),
    _F.CLOSE: Row(_S.ABSENT, "answer_close"),
    _F.ABORT: Row(_S.ABSENT, "bury"),
    _F.RECONNECTED: Row(_S.ABSENT, "break_silence"),
    # The executor may have spoken before it heard that the lease was given up.
    _F.CHUNK: Row(_S.ABSENT, "ignore"),
    _F.EXECUTOR_FAILED: Row(_S.ABSENT, "ignore"),
    _F.WRITE_STRAY: Row(_S.ABSENT, "ignore"),
}


def _live_facts(here: PrefillState) -> dict[PrefillFact, Row[PrefillState]]:
    """Rows that COMPUTING and SENDING have in common."""
    return {
        _F.PREFILL_AGAIN: Row(here, "nothing"),
        _F.WRITTEN: Row(here, "post_more"),
        _F.BATCH_DEADLINE: Row(here, "stop_posting"),
        _F.WRITE_FAILED: Row(_S.CLOSING, "give_up_connection"),
        _F.WRITE_DROPPED: Row(_S.CLOSING, "give_up_transfer"),
        _F.CONNECTION_FAILED: Row(_S.CLOSING, "give_up_transfer"),
        _F.DESTROYED: Row(_S.CLOSING, "give_up_transfer"),
        _F.RECONNECTED: Row(here, "nothing"),
        _F.CLOSE: Row(_S.CLOSING, "give_up_aborted"),
        _F.ABORT: Row(_S.CLOSING, "give_up_aborted"),
        _F.FORGOTTEN: Row(_S.CLOSING, "give_up_aborted"),
        _F.ROUTER_LOST: Row(_S.CLOSING, "give_up_lost"),
        _F.DECODE_LOST: Row(_S.CLOSING, "give_up_lost"),
        _F.LAUNCHED: Row(here, "nothing"),
        _F.RETIRED: Row(here, "nothing"),
    }


_COMPUTING = {
    **_live_facts(_S.COMPUTING),
    _F.CHUNK: Row(_S.COMPUTING, "take_chunk"),
    _F.LAST_CHUNK: Row(_S.SENDING, "take_last_chunk"),
    _F.EXECUTOR_FAILED: Row(_S.CLOSING, "give_up_executor"),
}

_SENDING = {
    **_live_facts(_S.SENDING),
    _F.ALL_WRITTEN: Row(_S.CLOSING, "say_done"),
}

_CLOSING = {
    _F.POSTS_QUIET: Row(_S.CLOSING, "say_closed"),
    _F.QUIET: Row(_S.ABSENT, "give_back"),
    _F.CLOSE: Row(_S.CLOSING, "answer_if_said"),
    _F.WRITTEN: Row(_S.CLOSING, "nothing"),
    _F.WRITE_FAILED: Row(_S.CLOSING, "destroy"),
    _F.WRITE_DROPPED: Row(_S.CLOSING, "nothing"),
    _F.DESTROYED: Row(_S.CLOSING, "nothing"),
    _F.RECONNECTED: Row(_S.CLOSING, "nothing"),
    _F.BATCH_DEADLINE: Row(_S.CLOSING, "stop_posting"),
    _F.LAUNCHED: Row(_S.CLOSING, "nothing"),
    _F.RETIRED: Row(_S.CLOSING, "nothing"),
    # A chunk that was under way, or the end said by somebody else meanwhile.
    _F.CHUNK: Row(_S.CLOSING, "nothing"),
    _F.LAST_CHUNK: Row(_S.CLOSING, "nothing"),
    _F.ABORT: Row(_S.CLOSING, "nothing"),
    _F.FORGOTTEN: Row(_S.CLOSING, "nothing"),
    _F.ROUTER_LOST: Row(_S.CLOSING, "nothing"),
    _F.DECODE_LOST: Row(_S.CLOSING, "nothing"),
    _F.CONNECTION_FAILED: Row(_S.CLOSING, "nothing"),
    _F.PREFILL_AGAIN: Row(_S.CLOSING, "nothing"),
}

PREFILL_TABLE: Final = {
    (state, fact): row
    for state, rows in (
        (_S.ABSENT, _ABSENT),
        (_S.COMPUTING, _COMPUTING),
        (_S.SENDING, _SENDING),
        (_S.CLOSING, _CLOSING),
    )
    for fact, row in rows.items()
}
