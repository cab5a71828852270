"""The router's table: what can happen to a request and its current attempt.

Rules: entering CLOSING finishes the request towards the client, exactly once; the attempt's pages count
as outstanding until decode says that it ended. A new attempt is opened only from QUEUED, and QUEUED is
reached only with no attempt alive (law: the abort of n is sent before n+1 is opened).
"""

from enum import Enum, unique
from typing import Final

from kvfence.protocol.rows import Row


@unique
class RouterState(Enum):
    """State of a request."""

    ABSENT = "absent"
    QUEUED = "queued"  # waits for room, no attempt alive
    RESERVING = "reserving"  # decode was asked for pages
    PREFILLING = "prefilling"  # prefill has the lease, no token came yet in this attempt
    STREAMING = "streaming"
    CLOSING = "closing"  # finished for the client; decode has not said that the attempt ended


@unique
class RouterFact(Enum):
    """What an event means for a request."""

    SUBMIT_FITS = "submitted: it fits"
    SUBMIT_REFUSED = "submitted: refused"
    SUBMIT_AGAIN = "submitted: the number is taken"
    ROOM = "room on a prefill and a decode node"
    RESERVED = "reserved"
    RESERVE_BUSY = "reserve refused: not now"
    RESERVE_REFUSED = "reserve refused: for good"
    TOKEN = "token, next position"  # noqa: S105 -- a token of a language model
    TOKEN_MISPLACED = "token, another position"  # noqa: S105
    ENDED = "attempt ended: final"
    ENDED_BUSY = "attempt ended: prefill not now"
    ENDED_RETRY = "attempt ended: node lost, nothing streamed"
    PREEMPTED = "attempt ended: preempted"
    NODE_LOST_RETRY = "node lost, nothing streamed"
    NODE_LOST = "node lost"
    CLIENT_GONE = "client gone"
    REQUEST_DEADLINE = "request deadline"
    QUEUE_DEADLINE = "queue deadline"
    STRAY_END = "end or refusal of another attempt"
    STRAY_WORK = "token or reservation of another attempt"
    OVER = "nothing of the attempt is left"


_S = RouterState
_F = RouterFact

_ABSENT = {
    _F.SUBMIT_FITS: Row(_S.QUEUED, "enqueue"),
    _F.SUBMIT_REFUSED: Row(_S.ABSENT, "refuse"),
    _F.CLIENT_GONE: Row(_S.ABSENT, "ignore"),
    _F.STRAY_END: Row(_S.ABSENT, "ignore"),
    _F.STRAY_WORK: Row(_S.ABSENT, "drop_and_abort"),
}


def _common_facts(here: RouterState) -> dict[RouterFact, Row[RouterState]]:
    """Rows that every state between submission and the end has."""
    return {
        _F.CLIENT_GONE: Row(_S.CLOSING, "leave"),
        _F.REQUEST_DEADLINE: Row(_S.CLOSING, "pass_deadline"),
        _F.STRAY_END: Row(here, "ignore"),
        _F.STRAY_WORK: Row(here, "drop_and_abort"),
    }


def _attempt_facts(here: RouterState) -> dict[RouterFact, Row[RouterState]]:
    """Rows of the states in which an attempt is alive."""
    return {
        **_common_facts(here),
        _F.QUEUE_DEADLINE: Row(here, "note_overdue"),
        _F.ENDED: Row(_S.CLOSING, "finish"),
        _F.PREEMPTED: Row(_S.QUEUED, "restart"),
        _F.NODE_LOST: Row(_S.CLOSING, "lose_node"),
    }


# Once a token was streamed in the attempt there is nothing to recompute in silence.
_RETRY = {
    _F.ENDED_RETRY: Row(_S.QUEUED, "retry"),
    _F.NODE_LOST_RETRY: Row(_S.QUEUED, "retry"),
}


_QUEUED = {
    **_common_facts(_S.QUEUED),
    _F.ROOM: Row(_S.RESERVING, "open_attempt"),
    _F.QUEUE_DEADLINE: Row(_S.CLOSING, "give_up_waiting"),
}

_RESERVING = {
    **_attempt_facts(_S.RESERVING),
    **_RETRY,
    _F.RESERVED: Row(_S.PREFILLING, "hand_over"),
    _F.RESERVE_BUSY: Row(_S.QUEUED, "bounce"),
    _F.RESERVE_REFUSED: Row(_S.CLOSING, "report_refusal"),
}

_PREFILLING = {
    **_attempt_facts(_S.PREFILLING),
    **_RETRY,
    _F.RESERVED: Row(_S.PREFILLING, "ignore"),
    _F.TOKEN: Row(_S.STREAMING, "deliver"),
    _F.TOKEN_MISPLACED: Row(_S.PREFILLING, "drop"),
    _F.ENDED_BUSY: Row(_S.QUEUED, "bounce"),
}

_STREAMING = {
    **_attempt_facts(_S.STREAMING),
    _F.RESERVED: Row(_S.STREAMING, "ignore"),
    _F.TOKEN: Row(_S.STREAMING, "deliver"),
    _F.TOKEN_MISPLACED: Row(_S.STREAMING, "drop"),
}

_CLOSING = {
    _F.OVER: Row(_S.ABSENT, "forget"),
    _F.REQUEST_DEADLINE: Row(_S.CLOSING, "let_go"),
    _F.ENDED: Row(_S.CLOSING, "let_go"),
    _F.RESERVE_REFUSED: Row(_S.CLOSING, "let_go"),
    _F.NODE_LOST: Row(_S.CLOSING, "let_go"),
    # On their way when the abort was sent.
    _F.RESERVED: Row(_S.CLOSING, "nothing"),
    _F.TOKEN: Row(_S.CLOSING, "drop"),
    _F.CLIENT_GONE: Row(_S.CLOSING, "nothing"),
    _F.QUEUE_DEADLINE: Row(_S.CLOSING, "nothing"),
    _F.STRAY_END: Row(_S.CLOSING, "nothing"),
    _F.STRAY_WORK: Row(_S.CLOSING, "drop_and_abort"),
}

ROUTER_TABLE: Final = {
    (state, fact): row
    for state, rows in (
        (_S.ABSENT, _ABSENT),
        (_S.QUEUED, _QUEUED),
        (_S.RESERVING, _RESERVING),
        (_S.PREFILLING, _PREFILLING),
        (_S.STREAMING, _STREAMING),
        (_S.CLOSING, _CLOSING),
    )
    for fact, row in rows.items()
}
