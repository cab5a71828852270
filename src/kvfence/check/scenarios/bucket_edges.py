"""bucket-edges: the same request, side by side with itself, in batches below, at and above powers of two.

Batches that are no power of two are often padded up to the next: padding rows must touch nobody's slots. And
any batch must say what one alone says, where the answer leaves no choice.

Rules it keeps: requests of a batch are identical and their answer is forced, so that nothing can leak and
rounding has little to change. Hence the worst verdict is *suspect*: a defect of batches, which other
scenarios may show to be a leak. A threshold is fitted on one half of the controls and tested on the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kvfence.check.known import Known
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.saying import (
    Sayer,
    asks_cost,
    co_residence,
    find_sayer,
    heard_of,
    sayer_cost,
)
from kvfence.check.statistics import detectable_rate, lower_share
from kvfence.check.statistics_threshold import fit_threshold
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

WORDS_NEEDED = 2
SERIAL = 40
FULL = (2, 4, 8, 16)
EDGES = (3, 5, 7, 9, 15, 17)
FULL_TIMES = 2
TESTS = 2
ALPHA = 0.01


@dataclass(slots=True)
class Shares:
    """Shares of wrong answers: of each serial answer (0 or 1), each full batch, each batch at an edge."""

    serial: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)
    edges: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)  # 0 or 1 of every answer of a batch


def cost(_known: Known, size: Size) -> Cost:
    """Serial controls, full batches, and those at the edges."""
    batches = (FULL_TIMES * sum(FULL) + sum(EDGES)) * size.rounds
    return sayer_cost(WORDS_NEEDED) + asks_cost(SERIAL) + asks_cost(batches, at_once=8)


async def run(bench: Bench) -> Outcome:
    """Ask alone and in batches, in random order, and compare how often the forced answer comes out wrong."""
    sayer = await find_sayer(bench, WORDS_NEEDED)
    if sayer is None:
        why = f"this model does not repeat {WORDS_NEEDED} words when asked for one at a time"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    shares = Shares()
    for index in range(SERIAL):
        shares.serial += await _batch(bench, sayer, sayer.words[index % WORDS_NEEDED], 1)
    sizes = [*FULL * (FULL_TIMES * bench.size.rounds), *EDGES * bench.size.rounds]
    bench.random.shuffle(sizes)
    for size in sizes:
        wrong = await _batch(bench, sayer, bench.random.choice(sayer.words), size)
        if wrong:
            shares.answers += wrong
            (shares.full if size in FULL else shares.edges).append(sum(wrong) / len(wrong))
    return _outcome(bench, shares)


async def _batch(bench: Bench, sayer: Sayer, word: str, size: int) -> list[float]:
    """1.0 for each answer of a batch that does not say the word, 0.0 for the others."""
    mark = "control" if size == 1 or size in FULL else "probe"
    replies = await together(
        bench.ask(bench.tenants[0], sayer.form.ask(word, mark=mark)) for _ in range(size)
    )
    return [float(heard_of(reply, sayer.words) != {word}) for reply in replies if reply.is_answer]


def _outcome(bench: Bench, shares: Shares) -> Outcome:
    if not shares.edges or sum(shares.serial) > len(shares.serial) / 2:
        why = "too few answers came back right, or came back at all, one at a time"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    p_batch = _p_value(bench, shares.serial, shares.answers)
    p_edge = _p_value(bench, shares.full, shares.edges)
    p_value = min(1.0, TESTS * min(p_batch, p_edge))
    right = len(shares.answers) - sum(shares.answers)
    why = (
        f"{sum(shares.answers):.0f} of {len(shares.answers)} forced answers in batches were wrong, "
        f"{sum(shares.serial):.0f} of {len(shares.serial)} one at a time; "
        f"{_bad(shares.edges)} of {len(shares.edges)} batches at edges, {_bad(shares.full)} of "
        f"{len(shares.full)} full ones"
    )
    is_suspect = p_value <= ALPHA
    effect = detectable_rate(len(shares.serial) // 2)
    return Outcome(
        verdict=Verdict.SUSPECT if is_suspect else Verdict.NO_EVIDENCE,
        why=why,
        opportunities=len(shares.answers),
        sensitivity=lower_share(round(right), len(shares.answers)),
        co_residence=co_residence(bench.known),
        p_value=p_value,
        smallest_effect=f"wrong answers at a rate of {effect:.0%}, beside {len(shares.serial)} serial ones",
        sightings=(_sighting(why, shares, is_edge=p_edge < p_batch),) if is_suspect else (),
    )


def _p_value(bench: Bench, controls: Sequence[float], probes: Sequence[float]) -> float:
    threshold = fit_threshold(controls, bench.random)
    return 1.0 if threshold is None else threshold.p_value(probes)


def _bad(shares: Sequence[float]) -> int:
    return sum(share > 0 for share in shares)


def _sighting(why: str, shares: Shares, *, is_edge: bool) -> Sighting:
    return Sighting(
        code="KVF206",
        severity=Severity.MEDIUM,
        what=why,
        subject_key="batch-edges" if is_edge else "batches",
        evidence={
            "answers": len(shares.answers),
            "wrong": round(sum(shares.answers)),
            "serial": len(shares.serial),
            "serial_wrong": round(sum(shares.serial)),
            "edge_batches": len(shares.edges),
            "edge_batches_wrong": _bad(shares.edges),
            "full_batches": len(shares.full),
            "full_batches_wrong": _bad(shares.full),
        },
        rival="rounding by batch size, in a model that is unsure of its answer; twins have nothing to leak",
    )


SCENARIO = Scenario(
    name="bucket-edges",
    what="identical requests in batches around powers of two",
    hazard=Hazard.ORDINARY,
    classes=("padding-touches-live", "row-mixup"),
    oracle="a forced answer that comes out wrong in batches, or at their edges, more than in controls",
    control="the same request alone, and in batches that need no padding",
    codes=("KVF206",),
    cost=cost,
    run=run,
)
