"""The decode node's table: what can happen to a lease that it granted.

Rules: the writer may write in RESERVED, and in CLOSING until it has closed or is cut; in VERIFYING,
RUNNING and WAITING it has closed. Only QUIET (law 4) leads from CLOSING to ABSENT, and only there pages
become FREE. The table does not say when a fact is true: `decode.py` classifies.
"""

from enum import Enum, unique
from typing import Final

from kvfence.protocol.rows import Row


@unique
class DecodeState(Enum):
    """State of a lease on decode."""

    ABSENT = "absent"
    RESERVED = "reserved"  # pages are leased, the writer may write
    VERIFYING = "verifying"  # the writer closed, its manifest is good, seals are being verified
    RUNNING = "running"
    WAITING = "waiting"  # the row needs a page and there is none
    CLOSING = "closing"  # ended; a writer or a step may be left


@unique
class DecodeFact(Enum):
    """What an event means for a lease."""

    RESERVE_FITS = "reserve: it fits"
    RESERVE_REFUSED = "reserve: refused"
    RESERVE_AGAIN = "reserve: repeated"
    ABORT = "abort"
    ROUTER_LOST = "router lost or superseded"
    WRITER_LOST = "writer lost or superseded"
    WRITER_CUT = "writer cut"
    LEASE_DEADLINE = "lease deadline"
    CLOSE_DEADLINE = "close not answered"
    GROWTH_DEADLINE = "growth deadline"
    CLOSED_GOOD = "closed: done, manifest equals reservation"
    CLOSED_BAD = "closed: done, manifest differs"
    CLOSED_SHORT = "closed: refused or failed"
    CLOSED_LATE = "closed: after the end"
    CLOSED_AGAIN = "closed: repeated"
    CLOSED_STRAY = "closed: unknown lease"
    SEALS_GOOD = "seals verified"
    SEALS_BAD = "seals rejected"
    GUARD_BAD = "guard rejected"
    TAIL_COPIED = "tail copied"
    TAIL_STRAY = "tail copied: nothing to copy"
    PAGE_FREE = "page wanted: one is free"
    PAGE_SHORT = "page wanted: none is free"
    PAGE_AGAIN = "page wanted: repeated"
    PAGE_CAME = "page became free"
    PAGE_SEALED = "page sealed"
    PAGE_STRAY = "page sealed: not an open page of the lease"
    PREEMPTED = "preempted"
    LAUNCHED = "step launched"
    RETIRED = "step retired"
    FINISHED = "row finished"
    QUIET = "quiet: writer closed or cut, no step left"


_S = DecodeState
_F = DecodeFact

_ABSENT = {
    _F.RESERVE_FITS: Row(_S.RESERVED, "lease"),
    _F.RESERVE_REFUSED: Row(_S.ABSENT, "refuse"),
    _F.ABORT: Row(_S.ABSENT, "bury"),
    _F.CLOSED_STRAY: Row(_S.ABSENT, "ignore"),
    # The executor may have spoken of a row before it heard that the row was stopped.
    _F.PAGE_FREE: Row(_S.ABSENT, "ignore"),
    _F.PAGE_SHORT: Row(_S.ABSENT, "ignore"),
    _F.PAGE_STRAY: Row(_S.ABSENT, "ignore"),
    _F.TAIL_STRAY: Row(_S.ABSENT, "ignore"),
    _F.FINISHED: Row(_S.ABSENT, "ignore"),
    _F.GUARD_BAD: Row(_S.ABSENT, "ignore"),
}

_RESERVED = {
    _F.RESERVE_AGAIN: Row(_S.RESERVED, "answer_again"),
    _F.ABORT: Row(_S.CLOSING, "abort"),
    _F.ROUTER_LOST: Row(_S.CLOSING, "lose_router"),
    _F.WRITER_LOST: Row(_S.CLOSING, "lose_writer"),
    _F.WRITER_CUT: Row(_S.CLOSING, "fail_by_cut"),
    _F.LEASE_DEADLINE: Row(_S.CLOSING, "pass_deadline"),
    _F.PREEMPTED: Row(_S.CLOSING, "preempt"),
    _F.CLOSED_GOOD: Row(_S.VERIFYING, "verify"),
    _F.CLOSED_BAD: Row(_S.CLOSING, "reject_manifest"),
    _F.CLOSED_SHORT: Row(_S.CLOSING, "report_outcome"),
}

# The writer has closed: whether it lives does not matter to the lease any more.
_WRITER_IS_DONE = (_F.WRITER_LOST, _F.WRITER_CUT, _F.CLOSED_AGAIN)

_VERIFYING = {
    _F.RESERVE_AGAIN: Row(_S.VERIFYING, "answer_again"),
    _F.ABORT: Row(_S.CLOSING, "abort"),
    _F.ROUTER_LOST: Row(_S.CLOSING, "lose_router"),
    _F.PREEMPTED: Row(_S.CLOSING, "preempt"),
    _F.SEALS_GOOD: Row(_S.RUNNING, "start"),
    _F.SEALS_BAD: Row(_S.CLOSING, "reject_pages"),
    **{fact: Row(_S.VERIFYING, "nothing") for fact in _WRITER_IS_DONE},
}


def _row_facts(here: DecodeState) -> dict[DecodeFact, Row[DecodeState]]:
    """Rows that RUNNING and WAITING have in common."""
    return {
        _F.RESERVE_AGAIN: Row(here, "answer_again"),
        _F.ABORT: Row(_S.CLOSING, "abort"),
        _F.ROUTER_LOST: Row(_S.CLOSING, "lose_router"),
        _F.PREEMPTED: Row(_S.CLOSING, "preempt"),
        _F.GUARD_BAD: Row(_S.CLOSING, "reject_pages"),
        _F.FINISHED: Row(_S.CLOSING, "finish"),
        _F.TAIL_COPIED: Row(here, "drop_original"),
        _F.PAGE_SEALED: Row(here, "seal_page"),
        _F.LAUNCHED: Row(here, "nothing"),
        _F.RETIRED: Row(here, "nothing"),
        **{fact: Row(here, "nothing") for fact in _WRITER_IS_DONE},
    }


_RUNNING = {
    **_row_facts(_S.RUNNING),
    _F.PAGE_FREE: Row(_S.RUNNING, "grant"),
    _F.PAGE_SHORT: Row(_S.WAITING, "wait"),
}

_WAITING = {
    **_row_facts(_S.WAITING),
    _F.PAGE_AGAIN: Row(_S.WAITING, "nothing"),
    _F.PAGE_CAME: Row(_S.RUNNING, "grant"),
    _F.GROWTH_DEADLINE: Row(_S.CLOSING, "starve"),
}

_CLOSING = {
    _F.QUIET: Row(_S.ABSENT, "free"),
    _F.CLOSED_LATE: Row(_S.CLOSING, "hear_closed"),
    _F.WRITER_CUT: Row(_S.CLOSING, "hear_closed"),
    _F.CLOSE_DEADLINE: Row(_S.CLOSING, "ask_again"),
    _F.RESERVE_AGAIN: Row(_S.CLOSING, "refuse_ended"),
    _F.SEALS_GOOD: Row(_S.CLOSING, "nothing"),
    _F.SEALS_BAD: Row(_S.CLOSING, "poison"),
    _F.GUARD_BAD: Row(_S.CLOSING, "poison"),
    _F.LAUNCHED: Row(_S.CLOSING, "nothing"),
    _F.RETIRED: Row(_S.CLOSING, "nothing"),
    # Said again, or said by others meanwhile: nothing to do, and nothing strange.
    _F.ABORT: Row(_S.CLOSING, "nothing"),
    _F.ROUTER_LOST: Row(_S.CLOSING, "nothing"),
    _F.WRITER_LOST: Row(_S.CLOSING, "nothing"),
    _F.CLOSED_AGAIN: Row(_S.CLOSING, "nothing"),
}

DECODE_TABLE: Final = {
    (state, fact): row
    for state, rows in (
        (_S.ABSENT, _ABSENT),
        (_S.RESERVED, _RESERVED),
        (_S.VERIFYING, _VERIFYING),
        (_S.RUNNING, _RUNNING),
        (_S.WAITING, _WAITING),
        (_S.CLOSING, _CLOSING),
    )
    for fact, row in rows.items()
}
