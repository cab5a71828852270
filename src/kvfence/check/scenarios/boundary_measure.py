"""What `boundary` measures before it goes near the limit: the context, the clock, and what the model recalls.

Rules it keeps: all of it is done with prompts of at most a sixteenth of the context (512 tokens where that is
less); lengths are asked in turn, so that a slow minute falls on all of them.
"""

import re
from dataclasses import dataclass

from kvfence.check.asks import Ask
from kvfence.check.known import Need
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Bench
from kvfence.check.scenarios.boundary_plan import (
    CLOCK_RUNS,
    CONTEXT_ASSUMED,
    CONTEXT_MIN,
    CONTROLS,
    HEAVY_TOKENS,
    Lengths,
    plan_s,
    wait_s,
)
from kvfence.check.scenarios.boundary_prompt import (
    ANSWER_TOKENS,
    NEEDLES,
    Form,
    LongPrompt,
    Recall,
    long_prompt,
    recall_in,
)
from kvfence.check.scenarios.boundary_reading import Yardstick, first_s
from kvfence.check.scenarios.clock import Clock, Point, fit
from kvfence.check.scenarios.filler import filler, nonce

ENORMOUS_TOKENS = 1_000_000_000
ROUNDING = 1e-6  # of a token: a fit through whole numbers
RECALLED_MIN = 3  # of five needles, for a control that recalls
_NUMBER = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)|(?<![\d.])\d{3,9}(?![\d.]*\d)")


@dataclass(frozen=True, slots=True)
class Scale:
    """From the run's own count to the server's: `offset` is what a chat template adds."""

    ratio: float = 1.0
    offset: float = 0.0
    is_measured: bool = False

    def count_for(self, tokens: int) -> int:
        """How much text makes a prompt of so many tokens."""
        return max(1, int((tokens - self.offset) / self.ratio + ROUNDING))

    def sent(self, count: int) -> int:
        """How many tokens the server will count."""
        return round(self.offset + self.ratio * count)


@dataclass(frozen=True, slots=True)
class Refused:
    """The clock itself could not be read: a reply other than an answer."""

    tokens: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class Measured:
    """`dropped` are lengths of the clock that are themselves too fast for the shorter ones."""

    clock: Clock
    scale: Scale
    dropped: tuple[int, ...] = ()


def numbers_in(message: str) -> tuple[int, ...]:
    """The numbers of three digits and more in a text: limits and lengths, in a refusal."""
    return tuple(int(number.replace(",", "")) for number in _NUMBER.findall(message))


def limit_in(message: str | None, sent: int) -> int | None:
    """The limit that a refusal names: its greatest number that is clearly below what was sent."""
    return max((number for number in numbers_in(message or "") if number < 0.98 * sent), default=None)


async def learn_context(bench: Bench) -> int | None:
    """The context, from what is known or from the refusal of an enormous `max_tokens`."""
    if bench.known.context_tokens is not None:
        return bench.known.context_tokens
    ask = Ask(
        prompt="Say yes.",
        mark="context",
        max_tokens=None,
        extra_body={"max_tokens": ENORMOUS_TOKENS},
        hang_up_after_chunks=1,
    )
    reply = await bench.ask(bench.tenants[0], ask)
    if reply.failure is not Failure.REFUSED:
        return None
    limits = [
        number
        for number in numbers_in(reply.message or "")
        if CONTEXT_MIN <= number <= CONTEXT_ASSUMED and number != ENORMOUS_TOKENS
    ]
    return max(limits, default=None)


async def measure_clock(bench: Bench, lengths: Lengths) -> Measured | Refused:
    """Ask for one token at each of the clock's lengths, three times; at the longest once.

    The controls that follow are of the longest length, and take the place of its other two.
    """
    points: list[Point] = []
    counts: list[tuple[int, int]] = []
    for turn in range(CLOCK_RUNS):
        for tokens in lengths.clock if turn == 0 else lengths.clock[:-1]:
            text = f"{nonce(bench.random)} "
            count = bench.known.counter.count
            text += filler(max(tokens - count(text), 1), bench.random, count)
            own = count(text)
            ask = Ask(
                prompt=text,
                mark="clock",
                prompt_tokens=own,
                max_tokens=1,
                is_heavy=tokens > HEAVY_TOKENS,
                timeout_s=wait_s(tokens),
                expected_s=plan_s(tokens),
            )
            reply = await bench.ask(bench.tenants[0], ask)
            if not reply.is_answer:
                return Refused(tokens, reply)
            points.append((tokens, first_s(reply)))
            if reply.usage.prompt_tokens is not None:
                counts.append((own, reply.usage.prompt_tokens))
    # Where tokens are estimated from bytes, the server's counts are missing, or were found to be untrue.
    scale = Scale() if bench.known.counter.how == "bytes" else scale_of(counts)
    clock, dropped = _trusted(
        [(scale.sent(tokens), seconds) for tokens, seconds in points], bench.known.noise_floor_s
    )
    return Measured(clock, scale, dropped)


def scale_of(counts: list[tuple[int, int]]) -> Scale:
    """A line through (own count, server's count); the identity where the server's make no sense."""
    if len({own for own, _ in counts}) < 2:
        return Scale()
    mean_x = sum(own for own, _ in counts) / len(counts)
    mean_y = sum(said for _, said in counts) / len(counts)
    spread = sum((own - mean_x) ** 2 for own, _ in counts)
    ratio = sum((own - mean_x) * (said - mean_y) for own, said in counts) / spread
    offset = mean_y - ratio * mean_x
    if not 0.5 <= ratio <= 2.0:
        return Scale()
    return Scale(ratio, offset, is_measured=True)


def _trusted(points: list[Point], noise_s: float) -> tuple[Clock, tuple[int, ...]]:
    """The clock of the lengths that agree: one that is too fast for the shorter ones is no measure."""
    kept = sorted({tokens for tokens, _ in points})
    dropped: list[int] = []
    while len(kept) > 2:
        shorter = fit(point for point in points if point[0] in kept[:-1])
        least = min(seconds for tokens, seconds in points if tokens == kept[-1])
        if not (shorter.can_tell(kept[-1], noise_s) and least < shorter.floor_s(kept[-1])):
            break
        dropped.append(kept.pop())
    return fit(point for point in points if point[0] in kept), tuple(reversed(dropped))


async def ask_long(
    bench: Bench,
    prompt: LongPrompt,
    *,
    tokens: int,
    mark: str,
    clock: Clock,
    max_tokens: int | None = ANSWER_TOKENS,
) -> Reply:
    """Ask a long prompt and wait for as long as the clock says, several times over."""
    ask = prompt.ask(
        mark=mark,
        timeout_s=wait_s(tokens, clock.predict_s(tokens)),
        expected_s=clock.at_worst_s(tokens),
        is_heavy=tokens > HEAVY_TOKENS,
        max_tokens=max_tokens,
    )
    return await bench.ask(bench.tenants[-1] if mark == "probe" else bench.tenants[0], ask)


def _recalled(recalls: list[Recall], form: Form) -> int:
    """How many controls were recalled."""
    wanted = RECALLED_MIN if form is Form.LIST else 1
    return sum(recall.count >= wanted for recall in recalls)


async def find_form(bench: Bench, measured: Measured) -> tuple[Yardstick, float]:
    """Which form this model recalls from the clock's longest length, and how often. Controls alone.

    A form that was not recalled once is left for the next one; the last one is asked to its end, so that the
    clock has its measurements of that length.
    """
    clock, tokens = measured.clock, measured.clock.points[-1][0]
    forms = [Form.LIST, Form.ECHO] if Need.COMPLETIONS in bench.known.has else [Form.LIST]
    found, share, recalls_all = None, 0.0, False
    points: list[Point] = []
    for form in forms:
        recalls = []
        for _ in range(CONTROLS):
            prompt = long_prompt(
                measured.scale.count_for(tokens), form, bench.random, bench.known.counter.count
            )
            reply = await ask_long(
                bench,
                prompt,
                tokens=tokens,
                mark="control",
                clock=clock,
                max_tokens=form.answer_tokens,
            )
            if reply.is_answer:
                points.append((tokens, first_s(reply)))
                recalls.append(recall_in(reply, prompt))
            if form is not forms[-1] and not _recalled(recalls[-1:], form):
                break
        share = _recalled(recalls, form) / CONTROLS
        if share == 1.0:
            found, recalls_all = form, all(recall.count == NEEDLES for recall in recalls)
            break
    clock = clock.with_points(points)
    yard = Yardstick(
        clock=clock,
        noise_s=bench.known.noise_floor_s,
        form=found,
        recalls_all=recalls_all,
        control_s=dict(clock.points)[tokens],
        trusts_usage=measured.scale.is_measured,
        count_error=0.0 if measured.scale.is_measured else bench.known.counter.error,
    )
    return yard, share
