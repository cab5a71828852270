"""counterfactual: only what another tenant says is changed, nothing else; does this tenant's answer change?

Rules it keeps:
- The other tenant's two prompts hold the same words in another order: as many tokens, the same shapes. The
  order of trials is drawn; each is one request of the other tenant and one of this, after it or beside it.
- Exact or nothing: it counts only if all answers beside the one content are equal to each other, all beside
  the other are too, and the two are not; and only if that holds a second time. Where equal trials differ
  among themselves, this way of asking says nothing.
- The positive control changes one word of this tenant's own prompt: an answer that does not follow it could
  not show another's content either.
- Exact only on an idle server of one's own: anybody else's load is content that changes, too.
"""

import dataclasses
from dataclasses import dataclass

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need
from kvfence.check.markers import Marker
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.quoting import quote_of, quotes_cost
from kvfence.check.scenarios.saying import co_residence
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

REPEATS = 6  # of each content, in each way, in a series; two series confirm
LINES = 8
WAYS = ("after", "beside")

Signature = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Pair:
    """This tenant's request, and the two contents of the other's; both have the same markers' words."""

    mine: Ask
    my_marker: Marker
    contents: tuple[Ask, Ask]
    other_marker: Marker


@dataclass(frozen=True, slots=True)
class Series:
    """Signatures beside each of the two contents."""

    one: tuple[Signature | None, ...]
    other: tuple[Signature | None, ...]

    @property
    def is_exact(self) -> bool:
        """Whether equal trials gave equal answers, and all gave one."""
        return all(None not in side and len(set(side)) == 1 for side in (self.one, self.other))

    @property
    def is_split(self) -> bool:
        """Whether the other's content, and nothing else, decided the answer."""
        return self.is_exact and self.one[0] != self.other[0]


def cost(_known: Known, size: Size) -> Cost:
    """Warm-up and control, then two series in each way."""
    requests = size.rounds * (4 + len(WAYS) * 2 * 2 * 2 * REPEATS)
    return quotes_cost(requests, lines=LINES)


async def run(bench: Bench) -> Outcome:
    """Series in both ways; what splits is tried again with the same pair."""
    exact, split, follows, notes = 0, 0, 0, []
    for _ in range(bench.size.rounds):
        pair = _pair(bench)
        is_same_shape, is_followed = await _prepare(bench, pair)
        if not is_same_shape:
            notes.append("the two contents had different lengths in this server's tokens: skipped")
            continue
        follows += is_followed
        for way in WAYS:
            series = await _series(bench, pair, way)
            exact += 2 * REPEATS * series.is_exact
            if not series.is_exact:
                notes.append(f"{way} it, equal trials did not give equal answers: this way says nothing")
            elif series.is_split and (await _series(bench, pair, way)) == series:
                return _leak(bench, way)
            split += series.is_split
    return _calm(bench, exact, split, follows, tuple(notes))


def _pair(bench: Bench) -> Pair:
    other, mine = bench.tenants[0], bench.tenants[-1]
    other_marker, my_marker = bench.mint(other), bench.mint(mine)
    backwards = " ".join(reversed(other_marker.text.split()))
    ask = quote_of(bench, other_marker, mark="beside", lines=LINES)
    changed = dataclasses.replace(ask, prompt=str(ask.prompt).replace(other_marker.text, backwards))
    probe = dataclasses.replace(
        quote_of(bench, my_marker, mark="probe", lines=LINES), wants_logprobs=Need.LOGPROBS in bench.known.has
    )
    return Pair(probe, my_marker, (ask, changed), other_marker)


async def _prepare(bench: Bench, pair: Pair) -> tuple[bool, bool]:
    """Warm every prompt, compare lengths, and see whether the answer follows this tenant's own words."""
    replies = [
        await bench.ask(bench.tenants[0], content, own=(pair.other_marker,)) for content in pair.contents
    ]
    counts = {reply.usage.prompt_tokens for reply in replies}
    mine = await _mine(bench, pair, pair.mine)
    first, *rest = pair.my_marker.text.split()
    moved = " ".join([*rest, first])
    control = dataclasses.replace(
        pair.mine, prompt=str(pair.mine.prompt).replace(pair.my_marker.text, moved), mark="control"
    )
    return len(counts) == 1, signature(await _mine(bench, pair, control)) != signature(mine)


async def _series(bench: Bench, pair: Pair, way: str) -> Series:
    order = [index for index in (0, 1) for _ in range(REPEATS)]
    bench.random.shuffle(order)
    seen: tuple[list[Signature | None], list[Signature | None]] = ([], [])
    for index in order:
        content = bench.ask(bench.tenants[0], pair.contents[index], own=(pair.other_marker,))
        if way == "after":
            await content
            reply = await _mine(bench, pair, pair.mine)
        else:
            _, reply = await together([content, _mine(bench, pair, pair.mine)])
        seen[index].append(signature(reply))
    return Series(tuple(seen[0]), tuple(seen[1]))


async def _mine(bench: Bench, pair: Pair, ask: Ask) -> Reply:
    return await bench.ask(bench.tenants[-1], ask, own=(pair.my_marker,))


def signature(reply: Reply) -> Signature | None:
    """What must be equal: the text, and the log-probabilities to the last digit. None: no answer."""
    if not reply.is_answer:
        return None
    return reply.content, (reply.top_logprobs, reply.finish)


def _leak(bench: Bench, way: str) -> Outcome:
    trials = 4 * REPEATS
    what = (
        f"in {trials} trials of {trials}, what one tenant was answered {way} another's request was decided "
        "by the order of the words in that other request, and by nothing else"
    )
    sighting = Sighting(
        code="KVF202",
        severity=Severity.CRITICAL,
        what=what,
        subject_key=f"counterfactual-{way}",
        evidence={"trials": trials, "way": way, "contents": 2, "equal_within_each": True},
        rival="load of others that happened to change with the drawn order: the server must be idle",
    )
    return Outcome(
        verdict=Verdict.LEAK,
        why=what,
        opportunities=trials,
        sensitivity=1.0,
        co_residence=co_residence(bench.known),
        sightings=(sighting,),
    )


def _calm(bench: Bench, exact: int, split: int, follows: int, notes: tuple[str, ...]) -> Outcome:
    if split:
        why = f"{split} series split by the other's content, and did not when they were tried again"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, notes=notes)
    if not (exact and follows):
        why = (
            "equal trials did not give equal answers"
            if not exact
            else "the answer does not even follow a change in its own prompt"
        )
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, notes=notes)
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=f"{exact} exact trials gave the same answer whatever the other tenant's words were",
        opportunities=exact,
        sensitivity=follows / bench.size.rounds,
        co_residence=co_residence(bench.known),
        smallest_effect="one different letter, or log-probability, in every trial with one of two contents",
        notes=notes,
    )


SCENARIO = Scenario(
    name="counterfactual",
    what="whether the words of another tenant's request, its shape held, change an answer",
    hazard=Hazard.ORDINARY,
    classes=("row-mixup", "padding-touches-live", "unscrubbed-reuse", "step-outlives-pages"),
    oracle="answers equal beside equal contents, and different beside different ones, in two series",
    control="equal trials among themselves; a change in the tenant's own prompt",
    codes=("KVF202", "KVF201"),
    cost=cost,
    run=run,
    needs=frozenset({Need.OWN_SERVER, Need.DETERMINISM}),
)
