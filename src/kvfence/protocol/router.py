"""The router's state machine: admits requests, opens attempts, tells the client one honest end.

It turns events into facts about one request and lets the table say what follows (`router_table.py`,
actions in `router_actions.py`). After each event the head of the queue is placed while it fits.

Rules kept here: law 6 (`refusal_for`, and again when nodes are picked), law 7 (each Submitted has exactly
one FinishRequest, and no cheerful one after a lost token), law 9 (attempts are named by our own numbers),
law 10 (only the newest incarnation of a node is heard). Two attempts of a request are never alive at once.

It holds no token ids and no pages: its page counts are an estimate for placing, decode is the judge.
"""

from typing import ClassVar

from kvfence.protocol import events
from kvfence.protocol.config import RouterConfig
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.errors import invariant
from kvfence.protocol.machine import count_states
from kvfence.protocol.peers import Greeting
from kvfence.protocol.router_actions import Pair, Refusing, RouterActions
from kvfence.protocol.router_request import NodeLoad, RouterRequest
from kvfence.protocol.router_table import RouterFact, RouterState
from kvfence.protocol.words import (
    AttemptId,
    EndReason,
    Peer,
    Refusal,
    RefusalCode,
    Role,
    TimerKind,
)

# Quarantined pages come home as soon as their writers have closed: a request waits for that as for room.
_NOT_NOW = (RefusalCode.BUSY, RefusalCode.DRAINING, RefusalCode.STALE, RefusalCode.QUARANTINE)
_FULL = (RefusalCode.BUSY, RefusalCode.STALE, RefusalCode.QUARANTINE)


class RouterCore(RouterActions):
    """Requests and their attempts on one router."""

    HANDLERS: ClassVar = {
        events.Hello: "_on_hello",
        events.PeerLost: "_on_peer_lost",
        events.Expired: "_on_expired",
        events.DrainRequested: "_on_drain",
        events.Submitted: "_on_submitted",
        events.ClientGone: "_on_client_gone",
        events.Reserved: "_on_reserved",
        events.ReserveRefused: "_on_reserve_refused",
        events.TokenMade: "_on_token",
        events.AttemptEnded: "_on_attempt_ended",
    }

    def __init__(self, me: Peer, config: RouterConfig, decisions: Decisions) -> None:
        super().__init__(me, config, decisions)

    # ------------------------------------------------------------ what others may read
    @property
    def limit_tokens(self) -> int | None:
        """Law 6: the largest prompt + max_tokens for any attempt; None while a role has no node."""
        pools = [node.pool_tokens for node in self.nodes.values()]
        if {node.role for node in self.nodes.values()} != {Role.PREFILL, Role.DECODE}:
            return None
        return self.decisions.advertised_tokens(self.config.context_tokens, min(pools))

    @property
    def request_counts(self) -> dict[str, int]:
        """How many requests are in each state, by the state's name."""
        return count_states(RouterState, self.requests.values())

    def refusal_for(self, prompt_tokens: int, max_tokens: int | None, *, choices: int = 1) -> Refusal | None:
        """Say why `choices` such requests would be refused now, or None: admitted together or not at all."""
        limit = self.limit_tokens
        if self.is_draining:
            return Refusal(RefusalCode.DRAINING)
        if limit is None:
            return Refusal(RefusalCode.UNAVAILABLE)
        needed = self.decisions.needed_tokens(prompt_tokens, max(1, max_tokens or 1))
        if not self.decisions.admits(needed, limit):
            return Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=needed, limit_tokens=limit)
        queue_room = self.config.queue_max - len(self.queue)
        requests_room = self.config.requests_max - len(self.requests)
        if choices > min(queue_room, requests_room):
            return Refusal(RefusalCode.BUSY)
        return None

    # ------------------------------------------------------------ peers
    def _on_hello(self, event: events.Hello) -> None:
        if event.role is Role.ROUTER or event.pool_tokens is None:
            self._count("misdirected")
            return
        greeting, older = self.peers.greet(event.sender, event.role)
        if greeting in (Greeting.STALE, Greeting.FULL):
            self._count("unknown_sender")
            return
        if older is not None:
            self._lose(older)
        node = self.nodes.get(event.sender)
        if node is None:
            node = NodeLoad(event.sender, event.role, event.pool_tokens, event.draining)
            self.nodes[event.sender] = node
        node.is_draining = event.draining
        node.is_full = node.is_full and event.free_pages == 0

    def _on_peer_lost(self, event: events.PeerLost) -> None:
        if self.peers.lose(event.peer):
            self._lose(event.peer)

    def _lose(self, peer: Peer) -> None:
        self.nodes.pop(peer, None)
        for record in list(self.requests.values()):
            needs_prefill = record.state in (RouterState.RESERVING, RouterState.PREFILLING)
            if record.decode == peer or (record.prefill == peer and needs_prefill):
                is_open = record.state is not RouterState.CLOSING
                retry = is_open and self._may_retry(record)
                self._fire(record, RouterFact.NODE_LOST_RETRY if retry else RouterFact.NODE_LOST)

    def _may_retry(self, record: RouterRequest) -> bool:
        return record.delivered_tokens == 0 and record.retries < self.config.retries_max

    def _on_drain(self, _event: events.DrainRequested) -> None:
        self.is_draining = True

    # ------------------------------------------------------------ client
    def _on_submitted(self, event: events.Submitted) -> None:
        invariant(event.prompt_tokens >= 1, "a request without a prompt is refused before the router")
        known = self.requests.get(event.request)
        if known is not None:
            self._fire(known, RouterFact.SUBMIT_AGAIN, event)
            return
        refusal = self.refusal_for(event.prompt_tokens, event.max_tokens)
        if refusal is not None:
            self._fire_absent(event.request, RouterFact.SUBMIT_REFUSED, Refusing(event.request, refusal))
            return
        rest = (self.limit_tokens or 0) - event.prompt_tokens
        record = RouterRequest(
            request=event.request,
            incarnation=self.me.incarnation,
            prompt_tokens=event.prompt_tokens,
            max_tokens=max(1, rest if event.max_tokens is None else event.max_tokens),
            state=RouterState.ABSENT,
        )
        self._fire_absent(event.request, RouterFact.SUBMIT_FITS, record)

    def _on_client_gone(self, event: events.ClientGone) -> None:
        record = self.requests.get(event.request)
        if record is None:
            self._fire_absent(event.request, RouterFact.CLIENT_GONE, event)
        else:
            self._fire(record, RouterFact.CLIENT_GONE, event)

    # ------------------------------------------------------------ decode
    def _on_reserved(self, event: events.Reserved) -> None:
        if self._may_speak(event.sender, event.attempt):
            self._fire_attempt(event, RouterFact.RESERVED, RouterFact.STRAY_WORK)

    def _on_reserve_refused(self, event: events.ReserveRefused) -> None:
        if not self._may_speak(event.sender, event.attempt):
            return
        record = self._current(event.sender, event.attempt)
        fact = RouterFact.RESERVE_REFUSED
        if record is not None and record.state is RouterState.RESERVING:
            self._mark(record, event.refusal.code)
            if event.refusal.code in _NOT_NOW and not record.is_overdue:
                fact = RouterFact.RESERVE_BUSY
        self._fire_attempt(event, fact, RouterFact.STRAY_END)

    def _mark(self, record: RouterRequest, code: RefusalCode) -> None:
        """Remember which node said "not now", so that it is not asked again before it speaks."""
        blamed = record.prefill if code is RefusalCode.STALE else record.decode
        node = None if blamed is None else self.nodes.get(blamed)
        if node is not None:
            node.is_full = node.is_full or code in _FULL
            node.is_draining = node.is_draining or code is RefusalCode.DRAINING

    def _on_token(self, event: events.TokenMade) -> None:
        if not self._may_speak(event.sender, event.attempt):
            return
        record = self.requests.get(event.attempt.request)
        current = self._current(event.sender, event.attempt)
        expected = 0 if record is None else record.tokens
        accepts = self.decisions.accepts_token(
            event.position, expected, is_current_attempt=current is not None
        )
        if record is None:
            self._fire_absent(event.attempt.request, RouterFact.STRAY_WORK, event)
        elif accepts:
            self._fire(record, RouterFact.TOKEN, event)
        elif current is None:
            self._fire(record, RouterFact.STRAY_WORK, event)
        else:
            self._fire(record, RouterFact.TOKEN_MISPLACED, event)

    def _on_attempt_ended(self, event: events.AttemptEnded) -> None:
        if not self._may_speak(event.sender, event.attempt):
            return
        record = self._current(event.sender, event.attempt)
        self.nodes[event.sender].is_full = False
        fact = RouterFact.ENDED if record is None else self._end_fact(record, event)
        prefill = None if record is None else record.prefill
        self._fire_attempt(event, fact, RouterFact.STRAY_END)
        if fact is RouterFact.ENDED_BUSY and prefill in self.nodes:
            self.nodes[prefill].is_full = True

    def _end_fact(self, record: RouterRequest, event: events.AttemptEnded) -> RouterFact:
        reason, refusal = event.end.reason, event.end.refusal
        if record.state is RouterState.CLOSING:
            return RouterFact.ENDED
        if reason is EndReason.PREEMPTED and record.delivered_tokens < record.max_tokens:
            return RouterFact.PREEMPTED
        if reason is EndReason.PEER_LOST and self._may_retry(record):
            return RouterFact.ENDED_RETRY
        is_not_now = reason is EndReason.REFUSED and refusal is not None and refusal.code in _NOT_NOW
        if is_not_now and record.state is RouterState.PREFILLING and not record.is_overdue:
            return RouterFact.ENDED_BUSY
        return RouterFact.ENDED

    def _may_speak(self, sender: Peer, attempt: AttemptId) -> bool:
        """Law 10: a living decode incarnation speaks, about an attempt of this router incarnation."""
        if self.peers.is_alive(sender, Role.DECODE) and attempt.incarnation == self.me.incarnation:
            return True
        self._count("unknown_sender")
        return False

    def _current(self, sender: Peer, attempt: AttemptId) -> RouterRequest | None:
        """Return the request whose attempt this is, if it is the current one, on that node."""
        record = self.requests.get(attempt.request)
        if record is None or record.attempt != attempt:
            return None
        is_there = record.decode is not None and self.decisions.speaks_for(sender, record.decode)
        return record if is_there else None

    def _fire_attempt(
        self,
        event: events.Reserved | events.ReserveRefused | events.AttemptEnded,
        fact: RouterFact,
        stray: RouterFact,
    ) -> None:
        record = self._current(event.sender, event.attempt)
        if record is not None:
            self._fire(record, fact, event)
            return
        known = self.requests.get(event.attempt.request)
        if known is None:
            self._fire_absent(event.attempt.request, stray, event)
        else:
            self._fire(known, stray, event)

    # ------------------------------------------------------------ timers
    def _on_expired(self, event: events.Expired) -> None:
        key, kind = event.timer.key, event.timer.kind
        record = self.requests.get(key) if isinstance(key, int) else None
        if record is None or record.timers.get(kind) != event.generation:
            self._count("stale_timer")
            return
        is_queue = kind is TimerKind.QUEUE
        self._fire(record, RouterFact.QUEUE_DEADLINE if is_queue else RouterFact.REQUEST_DEADLINE, event)

    # ------------------------------------------------------------ placing
    def _settle(self) -> None:
        while self.queue:
            record = self.requests[self.queue[0]]
            pair = self._pick(record)
            if pair is None:
                return
            self.queue.pop(0)
            self._fire(record, RouterFact.ROOM, pair)

    def _pick(self, record: RouterRequest) -> Pair | None:
        """Return the least loaded nodes where the attempt fits now, or None."""
        prefill = self._least_loaded(record, Role.PREFILL)
        decode = self._least_loaded(record, Role.DECODE)
        return None if prefill is None or decode is None else Pair(prefill, decode)

    def _least_loaded(self, record: RouterRequest, role: Role) -> NodeLoad | None:
        fitting = [n for n in self.nodes.values() if n.role is role and self._fits_now(n, record)]
        return min(fitting, key=lambda node: (node.pages, node.peer), default=None)

    def _fits_now(self, node: NodeLoad, record: RouterRequest) -> bool:
        """Tell whether to ask the node. An idle one is always worth asking, where the request fits at all."""
        if node.is_draining or node.is_full:
            return False
        needed = self.decisions.needed_tokens(record.prompt_tokens, record.max_tokens)
        if not self.decisions.fits_node(needed, node.pool_tokens):
            return False
        used_tokens = (node.pages + self._attempt_pages(record)) * self.config.page_tokens
        pool_pages_tokens = node.pool_tokens // self.config.page_tokens * self.config.page_tokens
        return node.pages == 0 or used_tokens <= pool_pages_tokens
