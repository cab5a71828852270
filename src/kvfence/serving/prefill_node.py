"""A prefill node: computes prompts into its own pages and writes them into pages that decode leased.

`PrefillCore` decides what is computed, posted and closed; this class carries it out on the real pool,
the real model and one page connection for each decode incarnation. A page is sealed as soon as it is
full and posted while the next chunk is computed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from kvfence.engine import ChunkDone, ChunkPlan, PrefillExecutor, PromptJob, TokenLogprobs
from kvfence.protocol import PageState, PrefillCore, commands, events
from kvfence.protocol.errors import PeerError, unreachable
from kvfence.protocol.vocabulary import Command
from kvfence.protocol.words import IntegrityReason, LeaseId, Peer, Role
from kvfence.serving.node_loop import Facts, NodeLoop, NodeParts
from kvfence.serving.page_links import PageLinks
from kvfence.serving.prefill_pages import PrefillPages
from kvfence.serving.wire import (
    AbortMessage,
    Body,
    CloseMessage,
    LowestLiveMessage,
    PrefillMessage,
    closed_message,
    unpack_refs,
    unpack_tokens,
)
from kvfence.transport import BatchWritten

log = structlog.get_logger()


@dataclass(slots=True)
class _Hand:
    """A lease as the router handed it over, and what its Closed will carry."""

    message: PrefillMessage
    cached_tokens: int = 0
    first_logprobs: TokenLogprobs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillParts(NodeParts):
    """What a prefill node is made of."""

    core: PrefillCore
    pages: PrefillPages
    executor: PrefillExecutor
    links: PageLinks


class PrefillNode(NodeLoop):
    """Drives a PrefillCore on a real pool and a real model."""

    ROLE = Role.PREFILL

    def __init__(self, me: Peer, parts: PrefillParts) -> None:
        super().__init__(me, parts)
        self._parts = parts
        self._pages, self._executor, self._links = parts.pages, parts.executor, parts.links
        self._hands: dict[LeaseId, _Hand] = {}
        self._spoken_of: dict[str, int] = {}  # newest incarnation of each decode node; as many as nodes
        self._steps = 0
        self.stats.begin("prefill_tokens_total", "prefill_cached_tokens_total")
        self.stats.begin("transfer_bytes_total", "transfer_seconds_total")

    # ------------------------------------------------------------ messages in
    def on_message(self, sender: Peer, body: Body) -> None:
        """Translate a message into an event."""
        if isinstance(body, PrefillMessage):
            self._on_prefill(sender, body)
        elif isinstance(body, CloseMessage):
            self.driver.feed(events.Close(sender, body.lease))
        elif isinstance(body, LowestLiveMessage):
            self.driver.feed(events.LowestLive(sender, body.sequence))
        elif isinstance(body, AbortMessage):
            self.driver.feed(events.Abort(sender, body.attempt))
        else:
            raise PeerError(f"a {type(body).__name__} is not for a prefill node: dropped")

    def _on_prefill(self, sender: Peer, body: PrefillMessage) -> None:
        known = body.lease in self._hands
        if not known:
            self._hands[body.lease] = _Hand(body)
        self.driver.feed(
            events.Prefill(
                sender,
                body.attempt,
                body.decode,
                body.lease,
                unpack_refs(body.pages),
                unpack_tokens(body.tokens),
                body.domain,
            )
        )
        if not known and body.lease not in self._executor.jobs:
            self._hands.pop(body.lease, None)  # refused: nothing of it is kept

    def on_peer(self, peer: Peer, role: Role, pages_address: str | None, *, heard: bool) -> None:
        """Open a page connection to every decode incarnation.

        The router says of a new one before it hands over a lease there; the hello may come after that.
        An incarnation that the router only speaks of is tried once: it may be dead.
        """
        if role is not Role.DECODE or pages_address is None:
            return
        newest = self._spoken_of.get(peer.node)
        is_new = newest is None or peer.incarnation > newest
        if is_new:
            self._spoken_of[peer.node] = peer.incarnation
        if (heard or is_new) and self._links.connect(peer, pages_address):
            self.driver.feed(events.Reconnected(peer))

    # ------------------------------------------------------------ commands out
    def carry_out(self, command: Command) -> None:
        """One command of the core."""
        match command:
            case commands.StartPrefill():
                self._start(command)
            case commands.StopPrefill():
                self._stop(command)
            case commands.PostBatch():
                self._post(command)
            case commands.StopPosting():
                self._links.stop_posting(command.lease, command.batch)
            case commands.SendClosed():
                self._send_closed(command)
            case commands.DestroyConnection():
                self._links.destroy(command.peer)
            case commands.PagesFreed():
                self._pages.freed(command.pages)
            case _:
                unreachable(f"this core gives no {type(command).__name__}")

    def _start(self, command: commands.StartPrefill) -> None:
        hand = self._hands[command.lease]
        hand.cached_tokens = command.cached_tokens
        self._pages.begin(command)
        self._executor.start(
            PromptJob(
                lease=command.lease,
                tokens=command.tokens,
                pages=command.pages,
                sampling=hand.message.sampling,
                made_tokens=hand.message.made_tokens,
                cached_tokens=command.cached_tokens,
            )
        )
        self.stats.add("prefill_cached_tokens_total", command.cached_tokens)

    def _stop(self, command: commands.StopPrefill) -> None:
        self._executor.stop(command.lease)
        self._pages.leave(command.lease)

    def _post(self, command: commands.PostBatch) -> None:
        key = self._hands[command.lease].message.key
        batch = self._pages.stage(command, key)
        if not self._links.post(command.decode, batch):
            self.driver.feed(events.WriteFailed(command.lease, command.batch, quiet=True))

    def _send_closed(self, command: commands.SendClosed) -> None:
        hand = self._hands.pop(command.lease, None)
        message = closed_message(
            command.lease,
            command.outcome,
            None if hand is None else hand.first_logprobs,
            0 if hand is None else hand.cached_tokens,
        )
        if message.refused is not None:
            self.stats.add("refusals_total", reason=message.refused.code.value)
        self._executor.stop(command.lease)
        self._pages.leave(command.lease)
        self.send(command.decode, message)

    # ------------------------------------------------------------ steps
    def compute(self) -> bool:
        """One pass over the chunks whose turn it is."""
        plans = self._owned(self._executor.plan())
        if not plans:
            return False
        self._steps += 1
        self.driver.feed(events.StepLaunched(self._steps, tuple(plan.lease for plan in plans)))
        try:
            done = self._executor.forward(plans)
        except (RuntimeError, MemoryError) as error:
            log.exception("prefill step failed")
            self.driver.feed(events.StepRetired(self._steps))
            for plan in plans:
                self.driver.feed(events.ExecutorFailed(plan.lease, type(error).__name__))
            return True
        self.driver.feed(events.StepRetired(self._steps))
        self.stats.add("prefill_tokens_total", sum(plan.end - plan.start for plan in plans))
        still_owned = {plan.lease for plan in self._owned(plans)}
        for chunk in done:
            if chunk.plan.lease in still_owned:
                self._chunk_done(chunk)
        return True

    def _owned(self, plans: Sequence[ChunkPlan]) -> list[ChunkPlan]:
        """The ownership check of every step: a prompt whose pages are not its own any more fails."""
        for plan in plans:
            lost = self._pages.lost_pages(plan.lease)
            if lost:
                log.error("prompt taken out by the guard", pages=len(lost))
                self.stats.add("integrity_failures_total", reason=IntegrityReason.GUARD_OWNER.value)
                self.driver.feed(events.ExecutorFailed(plan.lease, "pages are not the lease's own"))
        return [plan for plan in plans if plan.lease in self._executor.jobs]

    def _chunk_done(self, chunk: ChunkDone) -> None:
        plan, first = chunk.plan, chunk.first
        if plan.last and first is None:
            self.driver.feed(events.ExecutorFailed(plan.lease, "logits are not finite"))
            return
        self._pages.seal_until(plan.lease, plan.end, last=plan.last)
        hand = self._hands.get(plan.lease)
        if first is not None and hand is not None:
            hand.first_logprobs = first.logprobs
        self.driver.feed(events.ChunkComputed(plan.lease, plan.end, None if first is None else first.token))

    # ------------------------------------------------------------ the rest of the loop
    def poll(self) -> None:
        """Completions and lost connections of the page links."""
        completions, destroyed = self._links.poll()
        for completion in completions:
            if isinstance(completion, BatchWritten):
                self.stats.add("transfer_bytes_total", completion.written_bytes)
                self.stats.add("transfer_seconds_total", completion.posting_seconds)
                self.driver.feed(events.WriteCompleted(completion.lease, completion.batch))
            else:
                log.warning("batch lost", why=completion.why.value, detail=completion.detail)
                self.driver.feed(
                    events.WriteFailed(completion.lease, completion.batch, quiet=completion.quiet)
                )
        for peer in destroyed:
            self.driver.feed(events.ConnectionDestroyed(peer))
        if destroyed:
            self._forget_silent()

    def _forget_silent(self) -> None:
        """Leases of which no Closed can be said are over all the same: nothing of them is kept."""
        for lease in self._hands.keys() - self._parts.core.leases.keys():
            del self._hands[lease]
            self._executor.stop(lease)
            self._pages.leave(lease)

    def wait_seconds(self) -> float:
        """A connection that is coming down is looked at soon."""
        return min(super().wait_seconds(), self._links.wait_seconds())

    def queue_lengths(self) -> Mapping[str, int]:
        """Prompts that still have tokens to compute."""
        return {"prompts": len(self._executor.schedule)}

    @property
    def free_pages(self) -> int:
        """FREE pages, and prefix pages that could be evicted."""
        ledger = self._parts.ledger
        return ledger.free_pages + ledger.count(PageState.CACHED)

    @property
    def facts(self) -> Facts:
        """With the decode nodes to which a page connection stands: the router waits for all of them."""
        return {**super().facts, "linked_decode_nodes": len(self._links)}
