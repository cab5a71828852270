"""A decode node: leases its pages to writers, verifies what arrives, and steps what is its own.

`DecodeCore` owns every decision about leases; this class translates messages into its events, carries
its commands out on the real pool, and runs the guard around each forward pass. Nothing of a request
leaves the node before its hand-over was verified, and no token before the guard has looked again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from kvfence.engine.decode_executor import DecodeExecutor, Row, Stepped, count_token
from kvfence.kv import GuardFinding
from kvfence.protocol import DecodeCore, commands, events
from kvfence.protocol.errors import PeerError, unreachable
from kvfence.protocol.vocabulary import Command
from kvfence.protocol.words import End, EndReason, LeaseId, Peer, Role
from kvfence.serving.asks import AskBook
from kvfence.serving.cutter import Cutter
from kvfence.serving.decode_pages import DecodePages
from kvfence.serving.node_loop import NodeLoop, NodeParts
from kvfence.serving.wire import (
    AbortMessage,
    Body,
    ClosedMessage,
    CloseMessage,
    EndedMessage,
    LowestLiveMessage,
    MadeToken,
    ReservedMessage,
    ReserveMessage,
    ReserveRefusedMessage,
    TokensMessage,
    closed_outcome,
    pack_refs,
    unpack_tokens,
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeParts(NodeParts):
    """What a decode node is made of."""

    core: DecodeCore
    pages: DecodePages
    executor: DecodeExecutor
    cutter: Cutter
    pages_address: str


class DecodeNode(NodeLoop):
    """Drives a DecodeCore on a real pool and a real model."""

    ROLE = Role.DECODE

    def __init__(self, me: Peer, parts: DecodeParts) -> None:
        super().__init__(me, parts)
        self._parts = parts
        self._pages, self._executor = parts.pages, parts.executor
        self._asks = AskBook()
        self._outgoing: dict[Peer, list[MadeToken]] = {}
        self._steps = 0
        self.stats.begin("seals_verified_total", "preemptions_total")

    # ------------------------------------------------------------ messages in
    def on_message(self, sender: Peer, body: Body) -> None:
        """Translate a message into an event."""
        if isinstance(body, ReserveMessage):
            self._asks.hear(sender, body)
            self.driver.feed(
                events.Reserve(
                    sender, body.attempt, body.writer, body.tokens, body.max_tokens, body.token_hash
                )
            )
            self._asks.settle(body.attempt)
        elif isinstance(body, ClosedMessage):
            self._on_closed(sender, body)
        elif isinstance(body, AbortMessage):
            self.driver.feed(events.Abort(sender, body.attempt))
        else:
            raise PeerError(f"a {type(body).__name__} is not for a decode node: dropped")

    def _on_closed(self, sender: Peer, body: ClosedMessage) -> None:
        outcome = closed_outcome(body)
        ask = self._asks.of(body.lease)
        decisions = self._parts.core.decisions
        if ask is not None and ask.closed is None and decisions.speaks_for(sender, ask.message.writer):
            ask.closed = body
        self.driver.feed(events.Closed(sender, body.lease, outcome))

    # ------------------------------------------------------------ commands out
    def carry_out(self, command: Command) -> None:
        """One command of the core."""
        match command:
            case commands.StampPages():
                self._pages.stamp(command.lease, command.pages)
            case commands.SendReserved():
                self._send_reserved(command)
            case commands.SendReserveRefused():
                self._send_refused(command)
            case commands.VerifySeals():
                self._verify(command)
            case commands.StartRow():
                self._start_row(command)
            case commands.GrantPage():
                self._grant(command)
            case commands.StopRow():
                self._stop_row(command)
            case commands.SendClose():
                self.send(command.writer, CloseMessage(command.lease))
            case commands.SendLowestLive():
                self.send(command.writer, LowestLiveMessage(command.sequence))
            case commands.SendEnded():
                self._send_ended(command)
            case commands.AskCut():
                self._parts.cutter.ask(command.peer)
            case commands.PagesFreed():
                self._pages.freed(command.pages)
            case _:
                unreachable(f"this core gives no {type(command).__name__}")

    def _send_reserved(self, command: commands.SendReserved) -> None:
        self._asks.bind(command.lease, command.attempt)
        self.send(
            command.router,
            ReservedMessage(
                attempt=command.attempt,
                lease=command.lease,
                pages=pack_refs(command.pages),
                key=self._pages.key(command.lease),
            ),
        )

    def _send_refused(self, command: commands.SendReserveRefused) -> None:
        self.stats.add("refusals_total", reason=command.refusal.code.value)
        self.send(command.router, ReserveRefusedMessage(command.attempt, command.refusal))

    def _verify(self, command: commands.VerifySeals) -> None:
        ask = self._asks.of(command.lease)
        if ask is None:
            unreachable(f"{command.lease} is verified for an attempt that is known")
        result = self._pages.verify(command.lease, command.pages, ask.message.tokens)
        if result.reason is None:
            self.stats.add("seals_verified_total", result.verified_pages)
            self.driver.feed(events.SealsVerified(command.lease))
        else:
            log.error("hand-over refused", reason=result.reason.value, poisoned=len(result.poisoned))
            self.driver.feed(events.SealsRejected(command.lease, result.reason, result.poisoned))

    def _start_row(self, command: commands.StartRow) -> None:
        ask = self._asks.of(command.lease)
        if ask is None or ask.closed is None:
            unreachable(f"{command.lease} starts after its Closed")
        message, closed = ask.message, ask.closed
        table, copied = self._pages.adopt(command, message.tokens)
        if copied:
            self.driver.feed(events.TailCopied(command.lease))
        row = Row(
            lease=command.lease,
            attempt=command.attempt,
            router=ask.router,
            sampling=message.sampling,
            pages=table,
            position=message.tokens,
            last_token=command.manifest.first_token,
            left_tokens=message.max_tokens,
            cached_tokens=closed.cached_tokens,
            prompt_tokens=unpack_tokens(message.penalised),
            output_counts=dict(Counter(unpack_tokens(message.made))),
        )
        count_token(row, row.last_token)
        self._executor.start(row)
        self._emit(row, MadeToken(row.attempt, row.last_token, row.position, closed.first_logprobs))
        self._end_if_complete(row)

    def _grant(self, command: commands.GrantPage) -> None:
        row = self._executor.rows.get(command.lease)
        if row is None:
            unreachable(f"{command.lease} is granted a page while its row runs")
        self._pages.grow(command.lease, command.page, ordinal=len(row.pages))
        self._executor.grow(command.lease, command.page)

    def _stop_row(self, command: commands.StopRow) -> None:
        self._executor.stop(command.lease)
        self._pages.leave(command.lease)

    def _send_ended(self, command: commands.SendEnded) -> None:
        self._flush_tokens()
        end = command.end
        ask = self._asks.end(command.attempt)
        cached = 0 if ask is None or ask.closed is None else ask.closed.cached_tokens
        if end.integrity is not None:
            self.stats.add("integrity_failures_total", reason=end.integrity.value)
        if end.reason is EndReason.PREEMPTED:
            self.stats.add("preemptions_total")
        if end.refusal is not None:
            self.stats.add("refusals_total", reason=end.refusal.code.value)
        self.send(command.router, EndedMessage(command.attempt, end, cached))
        self.announce_now()

    # ------------------------------------------------------------ steps
    def compute(self) -> bool:
        """One decode step over the rows whose turn it is."""
        rows, wanting = self._executor.plan()
        for lease in wanting:
            self.driver.feed(events.PageWanted(lease))
        rows = self._admitted([row for row in rows if row.lease in self._executor.rows])
        if not rows:
            self._flush_tokens()
            return bool(wanting)
        self._steps += 1
        self.driver.feed(events.StepLaunched(self._steps, tuple(row.lease for row in rows)))
        try:
            logits = self._executor.forward(rows)
        except (RuntimeError, MemoryError) as error:
            self._fail_step(rows, error)
            return True
        rejected = self._pages.check_after([row.lease for row in rows])
        self.driver.feed(events.StepRetired(self._steps))
        kept = self._reject(rows, rejected)
        chosen = [index for index, row in enumerate(rows) if row.lease in kept]
        released = [rows[index] for index in chosen]
        for stepped in self._executor.advance(released, logits[chosen]):
            self._release(stepped)
        self._flush_tokens()
        return True

    def _admitted(self, rows: list[Row]) -> list[Row]:
        if not rows:
            return rows
        kept = self._reject(rows, self._pages.check_before([row.lease for row in rows]))
        return [row for row in rows if row.lease in kept]

    def _reject(self, rows: Sequence[Row], rejected: Sequence[GuardFinding]) -> set[LeaseId]:
        """Feed the guard's findings to the core; the leases that may go on."""
        for finding in rejected:
            log.error("row taken out by the guard", reason=finding.reason.value, pages=len(finding.pages))
            self.driver.feed(events.GuardRejected(finding.lease, finding.reason, finding.poisoned))
        return {row.lease for row in rows if row.lease in self._executor.rows}

    def _fail_step(self, rows: Sequence[Row], error: Exception) -> None:
        log.error("decode step failed", exc_info=error)
        self.driver.feed(events.StepRetired(self._steps))
        for row in rows:
            self.driver.feed(
                events.RowFinished(row.lease, End(EndReason.EXECUTOR, detail=type(error).__name__))
            )

    def _release(self, stepped: Stepped) -> None:
        row, sampled = stepped.row, stepped.sampled
        if row.lease not in self._executor.rows:
            return  # it made way for a row released before it, which may have its pages by now
        if sampled is None:
            end = End(EndReason.EXECUTOR, detail="logits are not finite")
            self.driver.feed(events.RowFinished(row.lease, end))
            return
        if row.position % self._pages.page_tokens == 0:
            full = row.pages[row.position // self._pages.page_tokens - 1]
            self._pages.seal_own(row.lease, full, row.position // self._pages.page_tokens - 1)
            self.driver.feed(events.PageSealed(row.lease, full))
        self._emit(row, MadeToken(row.attempt, sampled.token, row.position, sampled.logprobs))
        self._end_if_complete(row)
        if row.lease in self._executor.rows and self._executor.needs_page(row):
            self.driver.feed(events.PageWanted(row.lease))  # now, so that the row misses no step for it

    def _end_if_complete(self, row: Row) -> None:
        reason = self._executor.end_of(row)
        if reason is not None:
            self.driver.feed(events.RowFinished(row.lease, End(reason, next_position=row.position + 1)))

    def _emit(self, row: Row, made: MadeToken) -> None:
        self._outgoing.setdefault(row.router, []).append(made)

    def _flush_tokens(self) -> None:
        for router, tokens in self._outgoing.items():
            self.send(router, TokensMessage(tuple(tokens)))
        self._outgoing.clear()

    # ------------------------------------------------------------ the rest of the loop
    def on_peer(self, peer: Peer, role: Role, pages_address: str | None, *, heard: bool) -> None:
        """Writers come to this node; it goes to nobody."""

    def poll(self) -> None:
        """Ask for the state of cuts that are under way."""
        for event in self._parts.cutter.poll():
            self.driver.feed(event)

    def wait_seconds(self) -> float:
        """A cut under way is asked for again soon."""
        return min(super().wait_seconds(), self._parts.cutter.wait_seconds())

    def queue_lengths(self) -> Mapping[str, int]:
        """Rows without a seat, and rows that wait for a page."""
        schedule = self._executor.schedule
        return {"decode_rows": schedule.waiting_rows, "page_wanted": schedule.paused_rows}

    @property
    def free_pages(self) -> int:
        """FREE pages beyond the spare ones."""
        return self._parts.ledger.free_pages

    @property
    def pages_address(self) -> str:
        """Where writers reach the pool."""
        return self._parts.pages_address
