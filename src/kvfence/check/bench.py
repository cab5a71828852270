"""The bench that a scenario works on: every request of a run goes through here.

Rules it keeps:
- A request is counted in the budget before it is sent, and recorded when it is over, however it ends.
- Every text of every reply is searched for markers that this request was not given. One is enough: the reply
  goes nowhere, and the run stops.
- One heavy request is in flight at a time, and the lifeline runs beside it: a patient one where the server
  is the user's own.
- Nothing is ever sent twice by itself.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kvfence.check.asks import Ask
from kvfence.check.budget import Budget
from kvfence.check.known import Known
from kvfence.check.lifeline import Lifeline
from kvfence.check.markers import Hit, Marker, MarkerBook
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Size
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.protocol.errors import invariant
from kvfence.report import Answered, AnyEvent, CapabilityLearned, Noted


class Asker(Protocol):
    """Who carries a request to the server: the client."""

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        """Send it, and return whatever came of it. Cancelling closes the connection."""


@dataclass(kw_only=True)
class Session:
    """What all benches of a run share."""

    client: Asker
    lifeline_client: Asker
    known: Known
    book: MarkerBook
    budget: Budget
    tenants: tuple[str, ...]
    emit: Callable[[AnyEvent], None]
    began_s: float
    requests: int = 0
    heavy: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def at_s(self) -> float:
        """Seconds since the run began."""
        return asyncio.get_running_loop().time() - self.began_s


class LiveBench:
    """A scenario's Bench on a live server. See `scenario.Bench` for what its calls promise."""

    def __init__(self, session: Session, *, scenario: str, size: Size, seed: str) -> None:
        self._session = session
        self._scenario = scenario
        self._size = size
        self._random = random.Random(f"{seed}/{scenario}")  # noqa: S311 -- it must come again by its seed
        self._markers: list[Marker] = []
        self._lifeline = Lifeline(
            self._small, is_patient=session.known.is_own_server, patience=session.known.patience
        )
        self._in_flight: set[asyncio.Future[Reply]] = set()

    @property
    def known(self) -> Known:
        """What is known of the target."""
        return self._session.known

    @property
    def size(self) -> Size:
        """How much to do."""
        return self._size

    @property
    def random(self) -> random.Random:
        """The scenario's own stream of random numbers."""
        return self._random

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants."""
        return self._session.tenants

    async def ask(self, tenant: str, ask: Ask, *, own: tuple[Marker, ...] = ()) -> Reply:
        """Send a request and return its reply, recorded, with no foreign marker in it."""
        invariant(tenant in self.tenants, f"the run has no tenant {tenant}")
        if not ask.is_heavy:
            return await self._ask(self._session.client, tenant, ask, own)
        async with self._session.heavy:
            if self._lifeline.limit_s is None:
                await self._lifeline.learn()
            return await self._lifeline.beside(
                self._ask(self._session.client, tenant, ask, own), expected_s=ask.expected_s
            )

    def mint(self, owner: str) -> Marker:
        """Return a new marker that belongs to `owner`."""
        marker = self._session.book.mint(owner, self._random)
        self._markers.append(marker)
        return marker

    def forget(self, *markers: Marker) -> None:
        """Retire markers whose coming back would prove nothing any more."""
        self._session.book.retire(*markers)

    def note(self, text: str, *, is_warning: bool = False) -> None:
        """Say something that the report should hold."""
        session = self._session
        session.emit(Noted(at_s=session.at_s, text=f"{self._scenario}: {text}", is_warning=is_warning))

    def learned(self, name: str, value: float, how: str) -> None:
        """Say a figure of the server that the report should hold or draw, and how it was measured."""
        session = self._session
        session.emit(CapabilityLearned(at_s=session.at_s, name=name, value=value, how=how))

    async def close(self) -> None:
        """Cancel what is still in flight, and wait for it: connections are closed when this returns."""
        left = tuple(self._in_flight)
        for request in left:
            request.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _small(self, ask: Ask) -> tuple[int, Reply]:
        number = self._session.requests + 1
        return number, await self._ask(self._session.lifeline_client, self.tenants[0], ask, ())

    async def _ask(self, client: Asker, tenant: str, ask: Ask, own: tuple[Marker, ...]) -> Reply:
        session = self._session
        tokens = self._tokens_of(ask)
        estimate = session.budget.take(ask, tokens, at_s=session.at_s)
        session.requests += 1
        number = session.requests
        sent_s = session.at_s
        request = asyncio.ensure_future(client.ask(tenant, ask))
        self._in_flight.add(request)
        try:
            reply = await request
        except asyncio.CancelledError:
            reply = Reply(status=None, failure=Failure.HUNG_UP, total_s=session.at_s - sent_s)
            self._record(number, tenant, ask, reply)
            raise
        finally:
            self._in_flight.discard(request)
        session.budget.settle(estimate, reply)
        self._record(number, tenant, ask, reply)
        hits = self._foreign(reply, own)
        if hits:
            raise ForeignMarkerSeen(request=number, tenant=tenant, ask=ask, reply=reply, hits=hits)
        return reply

    def _foreign(self, reply: Reply, own: tuple[Marker, ...]) -> tuple[Hit, ...]:
        """Markers in any text of the reply that its request was not given, the surest first."""
        joined: dict[tuple[str, int], list[str]] = {}
        for text in reply.texts:
            joined.setdefault((text.place, text.choice), []).append(text.text)
        hits = [
            hit
            for (place, _), parts in joined.items()
            for hit in self._session.book.scan("".join(parts), place, own)
        ]
        return tuple(sorted(hits, key=lambda hit: -hit.bits))

    def _tokens_of(self, ask: Ask) -> int:
        if ask.prompt_tokens is not None:
            return ask.prompt_tokens
        if isinstance(ask.prompt, tuple):
            return len(ask.prompt)
        return self.known.counter.count(ask.prompt)

    def _record(self, number: int, tenant: str, ask: Ask, reply: Reply) -> None:
        usage = reply.usage
        self._session.emit(
            Answered(
                at_s=self._session.at_s,
                scenario=self._scenario,
                request=number,
                tenant=tenant,
                mark=ask.mark,
                status=reply.status,
                failure=None if reply.failure is None else reply.failure.value,
                finish=reply.told_finish,
                expected_prompt_tokens=ask.prompt_tokens,
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cached_tokens=usage.cached_tokens,
                ttft_s=reply.ttft_s,
                total_s=reply.total_s,
            )
        )
