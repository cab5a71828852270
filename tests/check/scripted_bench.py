"""A Bench without a server: a function answers each Ask, and everything that was asked is kept.

Rules it keeps: time is the running loop's, so a test runs in virtual time (`virtual.run`); a reply comes back
after its own `total_s`; a foreign marker raises ForeignMarkerSeen, as on the live bench. What it does not do:
budgets, the lifeline, the lock of heavy requests.
"""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need, TokenCounter
from kvfence.check.markers import Marker, MarkerBook
from kvfence.check.reply import Failure, Reply, Text, Usage
from kvfence.check.scenario import Scenario, Size
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Cost

EVERYTHING = frozenset(Need)
ROUNDING_S = 1e-6


def count_words(text: str) -> int:
    """The counter of scripted servers: a token is a word."""
    return len(text.split())


def plain_known(**changes) -> Known:
    """What is known of a scripted server that can do everything; a token is a word."""
    plain: dict = {
        "model": "scripted",
        "has": EVERYTHING,
        "counter": TokenCounter(count=count_words, how="ids", error=0.0),
        "context_tokens": 4_096,
        "context_from": "/v1/models",
        "noise_floor_s": 0.002,
        "short_ttft_s": 0.02,
        "is_loopback": True,
    }
    return Known(**(plain | changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request as the script sees it."""

    number: int
    tenant: str
    ask: Ask
    own: tuple[Marker, ...]

    @property
    def text(self) -> str:
        """The prompt, as text."""
        return self.ask.prompt if isinstance(self.ask.prompt, str) else " ".join(map(str, self.ask.prompt))

    @property
    def tokens(self) -> int:
        """Its length as the scripted counter counts it."""
        return count_words(self.text)


Script = Callable[[Sent], Reply | Awaitable[Reply]]


class ScriptedBench:
    """See the head of the file. `asked` holds every request in order, `replies` what each was answered."""

    def __init__(
        self,
        script: Script,
        *,
        known: Known | None = None,
        size: Size | None = None,
        tenants: tuple[str, ...] = ("a", "b"),
        seed: int = 0,
    ) -> None:
        self.script = script
        self.known = known or plain_known()
        self.size = size or Size()
        self.tenants = tenants
        self.random = random.Random(seed)
        self.asked: list[Sent] = []
        self.replies: list[Reply] = []
        self.notes: list[str] = []
        self.figures: dict[str, float] = {}
        self.book = MarkerBook()
        self.markers: list[Marker] = []
        self.most_at_once = 0
        self._in_flight: list[Sent] = []

    async def ask(self, tenant: str, ask: Ask, *, own: tuple[Marker, ...] = ()) -> Reply:
        assert tenant in self.tenants
        sent = Sent(number=len(self.asked) + 1, tenant=tenant, ask=ask, own=own)
        self.asked.append(sent)
        self._in_flight.append(sent)
        self.most_at_once = max(self.most_at_once, len(self._in_flight))
        try:
            # What is asked at once has all arrived before the first is answered.
            await asyncio.sleep(0)
            answer = self.script(sent)
            reply = await answer if inspect.isawaitable(answer) else answer
            await asyncio.sleep(min(reply.total_s, ask.timeout_s))
        finally:
            self._in_flight.remove(sent)
        self.replies.append(reply)
        hits = tuple(hit for text in reply.texts for hit in self.book.scan(text.text, text.place, own))
        if hits:
            raise ForeignMarkerSeen(request=sent.number, tenant=tenant, ask=ask, reply=reply, hits=hits)
        return reply

    def mint(self, owner: str) -> Marker:
        marker = self.book.mint(owner, self.random)
        self.markers.append(marker)
        return marker

    def forget(self, *markers: Marker) -> None:
        self.book.retire(*markers)
        for marker in markers:
            self.markers.remove(marker)

    def note(self, text: str, *, is_warning: bool = False) -> None:
        self.notes.append(text)

    def learned(self, name: str, value: float, how: str) -> None:
        assert how
        self.figures[name] = value

    @property
    def used(self) -> Cost:
        """What was really asked for: prompts by the counter, answers by `max_tokens`."""
        return Cost(
            requests=len(self.asked),
            prompt_tokens=sum(self.known.counter.count(sent.text) for sent in self.asked),
            completion_tokens=sum((sent.ask.max_tokens or 0) * sent.ask.n for sent in self.asked),
        )

    def in_flight_with(self, sent: Sent) -> tuple[Sent, ...]:
        """What is in flight beside a request, for scripts that mix requests up."""
        return tuple(other for other in self._in_flight if other is not sent)


def play(scenario: Scenario, bench: ScriptedBench):
    """Run a scenario in virtual time, hold it against its own cost, and return its outcome."""

    async def timed():
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome = await scenario.run(bench)
        return outcome, loop.time() - began

    outcome, seconds = run(timed())
    said, used = scenario.cost(bench.known, bench.size), bench.used
    assert used.requests <= said.requests, f"{used.requests} requests, {said.requests} were said"
    assert used.prompt_tokens <= said.prompt_tokens, f"{used} was used, {said} was said"
    assert used.completion_tokens <= said.completion_tokens, f"{used} was used, {said} was said"
    assert seconds <= said.seconds + ROUNDING_S, f"{seconds} s, {said.seconds} s were said"
    return outcome


def answered(
    text: str,
    *,
    prompt_tokens: int | None = None,
    completion_tokens: int | None = None,
    cached_tokens: int | None = None,
    ttft_s: float = 0.02,
    total_s: float | None = None,
    finish: str = "stop",
    choices: Iterable[str] | None = None,
    **changes,
) -> Reply:
    """A whole answer with status 200; `choices` has the texts when there are several."""
    texts = tuple(choices) if choices is not None else (text,)
    return Reply(
        status=200,
        texts=tuple(Text(place="content", text=one, choice=index) for index, one in enumerate(texts)),
        usage=Usage(
            prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cached_tokens=cached_tokens
        ),
        finish_reasons=(finish,) * len(texts),
        model="scripted",
        ttft_s=ttft_s,
        total_s=ttft_s if total_s is None else total_s,
        **changes,
    )


def refused(message: str = "too long", *, status: int = 400, total_s: float = 0.01) -> Reply:
    """A status of 4xx or 5xx, with the server's words."""
    failure = Failure.BUSY if status in {429, 503} else Failure.SERVER if status >= 500 else Failure.REFUSED
    return Reply(status=status, failure=failure, message=message, total_s=total_s)


def silent(after_s: float = 60.0) -> Reply:
    """Nothing, for as long as the request waits."""
    return Reply(status=None, failure=Failure.TIMEOUT, message="no answer", total_s=after_s)
