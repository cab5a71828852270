"""What the router does when a row of its table is taken: one method an action.

Actions change the request's record and the nodes' load and give commands. They never choose a state: the
row did. The client hears the end in one place, `_enter_closing`; abort n goes before attempt n+1 in
another, `_leave_attempt`.
"""

from dataclasses import dataclass

from kvfence.protocol import commands, events
from kvfence.protocol.config import RouterConfig, pages_for
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.machine import Machine
from kvfence.protocol.router_request import NodeLoad, RouterRequest
from kvfence.protocol.router_table import RouterFact, RouterState
from kvfence.protocol.tables import ROUTER, Transition
from kvfence.protocol.words import End, EndReason, Peer, Refusal, RefusalCode, Timer, TimerKind

_CHEERFUL = (EndReason.STOP, EndReason.LENGTH)


@dataclass(frozen=True, slots=True)
class Refusing:
    """A submission that is not taken, and why."""

    request: int
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Pair:
    """The two nodes that were picked for an attempt."""

    prefill: NodeLoad
    decode: NodeLoad


class RouterActions(Machine):
    """The actions of RouterCore, and the records they work on."""

    def __init__(self, me: Peer, config: RouterConfig, decisions: Decisions) -> None:
        super().__init__(me, decisions, config.peers_max)
        self.config = config
        self.requests: dict[int, RouterRequest] = {}
        self.queue: list[int] = []  # first in first out; what was preempted or bounced goes ahead
        self.nodes: dict[Peer, NodeLoad] = {}

    # ------------------------------------------------------------ firing
    def _fire(self, record: RouterRequest, fact: RouterFact, event: object = None) -> None:
        row = ROUTER.find(record.state, fact)
        self.trail.append(Transition(record.request, record.state, fact, row.next_state, row.action))
        record.state = row.next_state
        getattr(self, f"_do_{row.action}")(record, event)
        if record.state is RouterState.CLOSING and record.decode is None:
            self._fire(record, RouterFact.OVER)

    def _fire_absent(self, request: int, fact: RouterFact, event: object) -> None:
        """Take a row of ABSENT. A missing one passes through CLOSING with nothing to close."""
        row = ROUTER.find(RouterState.ABSENT, fact)
        self.trail.append(Transition(request, RouterState.ABSENT, fact, row.next_state, row.action))
        if row.next_state is RouterState.CLOSING:
            self._count("illegal")
            home = ROUTER.find(RouterState.CLOSING, RouterFact.OVER)
            self.trail.append(
                Transition(request, RouterState.CLOSING, RouterFact.OVER, home.next_state, "nothing")
            )
            return
        getattr(self, f"_absent_{row.action}")(event)

    # ------------------------------------------------------------ ABSENT
    def _absent_enqueue(self, record: RouterRequest) -> None:
        record.state = RouterState.QUEUED
        self.requests[record.request] = record
        self.queue.append(record.request)
        self._set_timer(record, TimerKind.REQUEST, self.config.request_ms)
        self._set_timer(record, TimerKind.QUEUE, self.config.queue_ms)

    def _absent_refuse(self, refusing: Refusing) -> None:
        self._count(f"refused_{refusing.refusal.code.value}")
        end = End(EndReason.REFUSED, refusal=refusing.refusal)
        self._say(commands.FinishRequest(refusing.request, end))

    def _absent_ignore(self, _event: object) -> None:
        self._count("stray")

    def _absent_drop_and_abort(self, event: events.TokenMade | events.Reserved) -> None:
        self._count("stray_work")
        self._say(commands.SendAbort(event.sender, event.attempt))

    # ------------------------------------------------------------ the good path
    def _do_open_attempt(self, record: RouterRequest, pair: Pair) -> None:
        record.number += 1
        record.decode, record.prefill = pair.decode.peer, pair.prefill.peer
        record.pages = self._attempt_pages(record)
        pair.decode.pages += record.pages
        pair.prefill.pages += record.pages
        self._say(
            commands.SendReserve(
                pair.decode.peer,
                record.attempt,
                pair.prefill.peer,
                record.tokens,
                record.max_tokens - record.delivered_tokens,
            )
        )

    def _do_hand_over(self, record: RouterRequest, event: events.Reserved) -> None:
        if record.decode is not None and record.prefill is not None:
            self._say(
                commands.SendPrefill(record.prefill, record.attempt, record.decode, event.lease, event.pages)
            )

    def _do_deliver(self, record: RouterRequest, event: events.TokenMade) -> None:
        if record.prefill in self.nodes:
            self.nodes[record.prefill].is_full = False  # it has just finished a prompt
        self._release_prefill(record)
        record.delivered_tokens += 1
        live = (r.request for r in self.requests.values() if r.state is not RouterState.CLOSING)
        request = self.decisions.addressee(record.request, live)
        self._say(commands.DeliverToken(request, event.position))

    def _do_drop(self, record: RouterRequest, event: events.TokenMade) -> None:
        self._count("tokens_dropped")
        if event.position > record.tokens:
            record.lost_tokens += 1

    def _do_drop_and_abort(self, _record: RouterRequest, event: events.TokenMade | events.Reserved) -> None:
        self._absent_drop_and_abort(event)

    def _do_note_overdue(self, record: RouterRequest, _event: object) -> None:
        record.is_overdue = True

    def _do_nothing(self, record: RouterRequest, event: object) -> None:
        """Take a row that only names what is legal."""

    def _do_ignore(self, _record: RouterRequest, _event: object) -> None:
        self._count("ignored")

    # ------------------------------------------------------------ another attempt
    def _do_bounce(self, record: RouterRequest, _event: object) -> None:
        """Not now: back to the head of the queue, under the queue deadline it already has."""
        self._leave_attempt(record)
        self.queue.insert(0, record.request)

    def _do_restart(self, record: RouterRequest, _event: object) -> None:
        """Preempted: recompute the prompt and what was delivered, ahead of the queue."""
        self._count("preempted")
        self._requeue(record)

    def _do_retry(self, record: RouterRequest, _event: object) -> None:
        self._count("retried")
        record.retries += 1
        self._requeue(record)

    def _requeue(self, record: RouterRequest) -> None:
        self._leave_attempt(record)
        self.queue.insert(0, record.request)
        record.is_overdue = False
        if record.delivered_tokens:
            # An answer that has begun waits as long as the request may take: half of it is no answer.
            record.timers[TimerKind.QUEUE] = record.timers.get(TimerKind.QUEUE, 0) + 1
        else:
            self._set_timer(record, TimerKind.QUEUE, self.config.queue_ms)

    def _leave_attempt(self, record: RouterRequest) -> None:
        """Abort the attempt on both nodes; only then may the next one be opened."""
        if self.decisions.aborts_before_next_attempt():
            self._abort(record)
        self._release(record)

    # ------------------------------------------------------------ ends
    def _do_finish(self, record: RouterRequest, event: events.AttemptEnded) -> None:
        self._release(record)
        end = event.end
        if end.reason is EndReason.PREEMPTED:
            end = End(EndReason.LENGTH)  # it was preempted after its last token
        if end.refusal is not None:
            end = End(end.reason, refusal=self._final_refusal(record, end.refusal), detail=end.detail)
        if end.reason in _CHEERFUL and self._misses_tokens(record, end):
            end = End(EndReason.TRANSFER, detail="tokens were lost between decode and router")
        self._enter_closing(record, end)

    def _do_report_refusal(self, record: RouterRequest, event: events.ReserveRefused) -> None:
        self._release(record)
        refusal = self._final_refusal(record, event.refusal)
        self._enter_closing(record, End(EndReason.REFUSED, refusal=refusal))

    def _do_give_up_waiting(self, record: RouterRequest, _event: object) -> None:
        refusal = Refusal(RefusalCode.DEADLINE)
        self._enter_closing(record, End(EndReason.REFUSED, refusal=refusal, detail="no room in time"))

    def _do_leave(self, record: RouterRequest, _event: object) -> None:
        self._abort(record)
        self._enter_closing(record, End(EndReason.CLIENT_GONE))

    def _do_pass_deadline(self, record: RouterRequest, _event: object) -> None:
        self._abort(record)
        self._enter_closing(record, End(EndReason.DEADLINE))

    def _do_lose_node(self, record: RouterRequest, _event: object) -> None:
        self._abort(record)
        if record.decode not in self.nodes:
            self._release(record)
        self._enter_closing(record, End(EndReason.PEER_LOST))

    def _do_fail_closed(self, record: RouterRequest, _event: object) -> None:
        self._count("illegal")
        came = self.trail[-1]
        self._abort(record)
        detail = f"no row for {came.fact.name} in {came.state.name}"
        self._enter_closing(record, End(EndReason.ILLEGAL, detail=detail))

    def _enter_closing(self, record: RouterRequest, end: End) -> None:
        """Tell the client, once. While decode may still answer, a deadline bounds the wait."""
        if record.request in self.queue:
            self.queue.remove(record.request)
        self._count(f"ended_{end.reason.value}")
        self._say(commands.FinishRequest(record.request, end))
        if record.decode is not None:
            self._set_timer(record, TimerKind.REQUEST, self.config.request_ms)

    def _do_let_go(self, record: RouterRequest, _event: object) -> None:
        self._release(record)

    def _do_forget(self, record: RouterRequest, _event: object) -> None:
        del self.requests[record.request]

    # ------------------------------------------------------------ helpers
    def _attempt_pages(self, record: RouterRequest) -> int:
        return pages_for(record.tokens, self.config.page_tokens)

    def _abort(self, record: RouterRequest) -> None:
        for peer in (record.decode, record.prefill):
            if peer is not None:
                self._say(commands.SendAbort(peer, record.attempt))

    def _misses_tokens(self, record: RouterRequest, end: End) -> bool:
        """Law 7: an answer with a hole, or without its end, is no answer."""
        is_short = end.reason is EndReason.LENGTH and record.delivered_tokens < record.max_tokens
        differs = end.next_position is not None and end.next_position != record.tokens
        return record.lost_tokens > 0 or is_short or differs

    def _release_prefill(self, record: RouterRequest) -> None:
        load = None if record.prefill is None else self.nodes.get(record.prefill)
        if load is not None:
            load.pages -= record.pages
        record.prefill = None

    def _release(self, record: RouterRequest) -> None:
        """Nothing of the attempt is outstanding any more."""
        self._release_prefill(record)
        load = None if record.decode is None else self.nodes.get(record.decode)
        if load is not None:
            load.pages -= record.pages
        record.decode = None
        record.pages = 0

    def _final_refusal(self, record: RouterRequest, refusal: Refusal) -> Refusal:
        """What the client hears: a "not now" that outlasted the queue deadline is that deadline."""
        is_waiting = refusal.code in (RefusalCode.BUSY, RefusalCode.DRAINING, RefusalCode.STALE)
        return Refusal(RefusalCode.DEADLINE) if is_waiting and record.is_overdue else refusal

    def _set_timer(self, record: RouterRequest, kind: TimerKind, after_ms: int) -> None:
        record.timers[kind] = record.timers.get(kind, 0) + 1
        self._say(commands.SetTimer(Timer(kind, record.request), record.timers[kind], after_ms))
