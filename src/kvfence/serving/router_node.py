"""The router's half that touches the world: jobs in, control messages out, tokens back.

`RouterCore` decides where an attempt goes, when it is retried and how it ends; this class keeps what the
core does not need to know (token ids, sampling, the client's buffer) and carries its commands out. It
runs on one event loop; the control plane's thread hands messages over to that loop.
"""

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence

import structlog

from kvfence.protocol import RouterCore, hash_tokens
from kvfence.protocol.commands import (
    DeliverToken,
    FinishRequest,
    SendAbort,
    SendPrefill,
    SendReserve,
)
from kvfence.protocol.errors import PeerError, invariant, unreachable
from kvfence.protocol.events import (
    AttemptEnded,
    ClientGone,
    DrainRequested,
    Hello,
    PeerLost,
    Reserved,
    ReserveRefused,
    Submitted,
    TokenMade,
)
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import End, EndReason, Peer, RefusalCode, Role
from kvfence.serving.control import INBOX_MESSAGES_MAX, ControlPlane, Inbound, LostPeer, Received
from kvfence.serving.driver import CoreDriver, Observer
from kvfence.serving.jobs import Job, JobStream
from kvfence.serving.router_stream import RouterStream
from kvfence.serving.stats import NodeStats, stat_key
from kvfence.serving.wire import (
    AbortMessage,
    EndedMessage,
    HelloMessage,
    MadeToken,
    PrefillMessage,
    ReservedMessage,
    ReserveMessage,
    ReserveRefusedMessage,
    TokensMessage,
    pack_refs,
    pack_tokens,
    unpack_refs,
)

# What the core does not need to know of a message, and its commands want.
Stepped = MadeToken | EndedMessage | ReservedMessage

log = structlog.get_logger()


class RouterNode:
    """Implements `Frontend` over a RouterCore and a ControlPlane. All methods on the event loop."""

    def __init__(self, core: RouterCore, *, loop: asyncio.AbstractEventLoop, started_at: float) -> None:
        self._core, self._loop, self.started_at = core, loop, started_at
        self._driver = CoreDriver(core, self._carry_out)
        self._attached: ControlPlane | None = None
        self._inbox: deque[Inbound] = deque()
        self._streams: dict[int, RouterStream] = {}
        self._requests = itertools.count(1)
        self._current: Stepped | None = None  # the message whose event is being stepped
        self._timer: asyncio.TimerHandle | None = None
        self.hellos: dict[str, tuple[Peer, HelloMessage]] = {}
        self.stats = NodeStats()
        self.stats.begin("refusals_total", reasons=RefusalCode)
        self.idle = asyncio.Event()  # set while no request is in flight
        self.idle.set()
        self.failed: asyncio.Future[None] = loop.create_future()  # set by what must end the process

    def attach(self, plane: ControlPlane) -> None:
        """Speak over this control plane; its `deliver` is ours."""
        self._attached = plane

    def observe(self, observer: Observer) -> None:
        """Tell this observer of every step. Before the first event."""
        self._driver.observer = observer

    @property
    def plane(self) -> ControlPlane:
        """The control plane that was attached."""
        if self._attached is None:
            unreachable("a node speaks only after its control plane was attached")
        return self._attached

    # ------------------------------------------------------------ Frontend
    @property
    def limit_tokens(self) -> int | None:
        """Largest prompt + max_tokens that every possible path serves."""
        return self._core.limit_tokens

    def submit(self, jobs: Sequence[Job]) -> list[JobStream]:
        """Admit all jobs or none."""
        streams = [RouterStream(next(self._requests), job, self._give_up) for job in jobs]
        refusals = (
            self._core.refusal_for(len(job.tokens), job.max_tokens, choices=len(jobs)) for job in jobs
        )
        refusal = next((found for found in refusals if found is not None), None)
        for stream in streams:
            if refusal is not None:
                end = End(EndReason.REFUSED, refusal=refusal)
                stream.put_end(end)
                self._count_end(end)
                continue
            self._streams[stream.request] = stream
            self.idle.clear()
            self.feed(Submitted(stream.request, len(stream.job.tokens), stream.job.max_tokens))
        return [*streams]

    def _give_up(self, request: int) -> None:
        self.feed(ClientGone(request))

    def drain(self) -> None:
        """Refuse what is new, finish what is old."""
        self.feed(DrainRequested())

    # ------------------------------------------------------------ events
    def feed(self, event: Event) -> None:
        """Step the core and set the alarm for its next timer."""
        self._driver.feed(event)
        self._set_alarm()

    def deliver(self, inbound: Inbound) -> bool:
        """Take what the control plane heard, on its thread; False when there is no room for a message."""
        if isinstance(inbound, Received) and len(self._inbox) >= INBOX_MESSAGES_MAX:
            return False
        self._inbox.append(inbound)
        self._loop.call_soon_threadsafe(self._hear_next)
        return True

    def _hear_next(self) -> None:
        """Called once for each delivery, so that there is always one to take."""
        with self._failing_closed():
            self._on_inbound(self._inbox.popleft())

    def _set_alarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        seconds = self._driver.next_due_seconds()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._on_alarm)

    def _on_alarm(self) -> None:
        self._timer = None
        with self._failing_closed():
            self._driver.fire_due()
            self._set_alarm()

    @contextlib.contextmanager
    def _failing_closed(self) -> Iterator[None]:
        """An event loop only logs what escapes its callbacks; here it ends the router, as it ends a node."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 -- it is handed on, whatever it is
            if not self.failed.done():
                self.failed.set_exception(error)

    def _on_inbound(self, inbound: Inbound) -> None:
        if isinstance(inbound, LostPeer):
            self.hellos.pop(inbound.peer.node, None)
            log.warning("peer lost", peer=inbound.peer.node)
            self.feed(PeerLost(inbound.peer))
            return
        try:
            self._on_message(inbound)
        except PeerError as error:
            self.plane.note_senseless()
            log.warning("message dropped", peer=inbound.sender.node, why=str(error))

    def _on_message(self, received: Received) -> None:
        sender, body = received.sender, received.body
        if isinstance(body, TokensMessage):
            for made in body.tokens:
                self._step_with(made, TokenMade(sender, made.attempt, made.position))
        elif isinstance(body, EndedMessage):
            self._step_with(body, AttemptEnded(sender, body.attempt, body.end))
        elif isinstance(body, ReservedMessage):
            event = Reserved(sender, body.attempt, body.lease, unpack_refs(body.pages))
            self._step_with(body, event)
        elif isinstance(body, ReserveRefusedMessage):
            self.feed(ReserveRefused(sender, body.attempt, body.refusal))
        elif isinstance(body, HelloMessage):
            self.hellos[sender.node] = (sender, body)
            self.feed(Hello(sender, body.role, body.pool_tokens, body.free_pages, body.draining))
        else:
            raise PeerError(f"a {type(body).__name__} is not for a router: dropped")

    def _step_with(self, message: Stepped, event: Event) -> None:
        self._current = message
        try:
            self.feed(event)
        finally:
            self._current = None

    # ------------------------------------------------------------ commands
    def _carry_out(self, command: Command) -> None:
        match command:
            case DeliverToken():
                self._deliver(command)
            case SendReserve():
                self._send_reserve(command)
            case SendPrefill():
                self._send_prefill(command)
            case SendAbort():
                self.plane.send(command.peer, AbortMessage(command.attempt))
            case FinishRequest():
                self._finish(command)
            case _:
                unreachable(f"a router gives no {type(command).__name__}")

    def _deliver(self, command: DeliverToken) -> None:
        made = self._current
        if not isinstance(made, MadeToken):
            unreachable("a token is delivered while its event is stepped")
        stream = self._streams[command.request]
        invariant(
            made.position == len(stream.job.tokens) + len(stream.made), "tokens are delivered in their order"
        )
        if not stream.put_token(made):
            log.warning("client too slow: request given up", request=command.request)
            stream.cancel()

    def _finish(self, command: FinishRequest) -> None:
        stream = self._streams.pop(command.request)
        if not self._streams:
            self.idle.set()
        if isinstance(self._current, EndedMessage):
            stream.cached_tokens = self._current.cached_tokens
        stream.put_end(command.end)
        self._count_end(command.end)

    def _count_end(self, end: End) -> None:
        if end.reason is EndReason.REFUSED and end.refusal is not None:
            self.stats.add("refusals_total", reason=end.refusal.code.value)

    def _send_reserve(self, command: SendReserve) -> None:
        stream = self._streams[command.attempt.request]
        job = stream.job
        tokens = (*job.tokens, *stream.made)
        invariant(len(tokens) == command.tokens, "the core and the node count the same tokens")
        counts_prompt = job.sampling.repetition_penalty != 1.0
        self.plane.send(
            command.decode,
            ReserveMessage(
                attempt=command.attempt,
                writer=command.writer,
                tokens=command.tokens,
                max_tokens=command.max_tokens,
                token_hash=hash_tokens(tokens),
                sampling=job.sampling,
                penalised=pack_tokens(job.tokens) if counts_prompt else b"",
                made=pack_tokens(stream.made),
            ),
        )

    def _send_prefill(self, command: SendPrefill) -> None:
        stream = self._streams[command.attempt.request]
        reserved = self._current
        if not isinstance(reserved, ReservedMessage) or reserved.lease != command.lease:
            unreachable("a lease is handed on while its Reserved is stepped")
        self.plane.send(
            command.prefill,
            PrefillMessage(
                attempt=command.attempt,
                decode=command.decode,
                lease=command.lease,
                pages=pack_refs(command.pages),
                key=reserved.key,
                tokens=pack_tokens((*stream.job.tokens, *stream.made)),
                domain=self._core.decisions.sharing_domain(stream.job.domain),
                sampling=stream.job.sampling,
                made_tokens=len(stream.made),
            ),
        )

    # ------------------------------------------------------------ what is shown
    def figures(self) -> dict[str, tuple[str, dict[str, float]]]:
        """For `/metrics`: the nodes' own figures, and the router's."""
        own = self.stats.snapshot()
        own[stat_key("queue_length", {"queue": "admission"})] = len(self._core.queue)
        for what, count in self._core.counts.items():
            own[stat_key("core_events_total", {"what": what})] = count
        for drop, count in self.plane.drops().items():
            own[stat_key("dropped_messages_total", {"reason": drop.value})] = count
        shown = {"router": (Role.ROUTER.value, own)}
        for node, (_, hello) in self.hellos.items():
            shown[node] = (hello.role.value, dict(hello.stats))
        return shown

    def server_info(self) -> dict[str, object]:
        """For `/server_info`: each node's facts as its last hello told them."""
        nodes = [
            {
                "name": node,
                "role": hello.role.value,
                "incarnation": peer.incarnation,
                "pool_tokens": hello.pool_tokens,
                "draining": hello.draining,
                **hello.facts,
            }
            for node, (peer, hello) in sorted(self.hellos.items())
        ]
        return {
            "largest_request_tokens": self.limit_tokens,
            "uptime_seconds": round(time.time() - self.started_at, 3),
            "nodes": nodes,
        }
