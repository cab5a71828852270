"""a-x-a: the same probe before and after an unrelated conversation, one request at a time.

What a request leaves behind in memory that its successor reads before it has written it (recurrent states,
cache tails, lengths, buffers) shows in that successor. Nothing else is in flight, and so nothing else
explains it.

Rules it keeps:
- Blocks with and without the stranger stand in random order; both are A/A pairs otherwise.
- A marker of the stranger in the probe is a leak, and the bench says so. A changed text alone is at most
  *suspect*, by Fisher's test against the blocks without a stranger.
- The probe is asked twice before anything counts: the second answer may come from a cache, the first cannot.
"""

from dataclasses import dataclass

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.markers import is_shown
from kvfence.check.markers_prompts import QUOTE_TOKENS, copying_endpoint, prompt_tokens_max, prompts_for
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.saying import asks_cost, co_residence
from kvfence.check.statistics import detectable_rate, fisher_greater, lower_share
from kvfence.report import Cost, Severity, Verdict

BLOCKS = 12  # half of them with a stranger
WARM = 2
PROBE_TOKENS = 24
STRANGER_LINES = 8
PROBE = "Tell a short story about a river and the people who live beside it."
ALPHA = 0.01


@dataclass(slots=True)
class Blocks:
    """Pairs of answers, and how many of them differ."""

    pairs: int = 0
    changed: int = 0


def cost(_known: Known, size: Size) -> Cost:
    """Two probes a block, and the strangers."""
    blocks = BLOCKS * size.rounds
    strangers = Cost(
        requests=blocks // 2,
        prompt_tokens=blocks // 2 * prompt_tokens_max(STRANGER_LINES),
        completion_tokens=blocks // 2 * QUOTE_TOKENS,
        seconds=blocks // 2 * 10.0,
    )
    return asks_cost(WARM + 2 * blocks, completion_tokens=PROBE_TOKENS) + strangers


async def run(bench: Bench) -> Outcome:
    """Play the blocks, and compare how often the second answer is another one."""
    for _ in range(WARM):
        await _probe(bench, "control")
    with_stranger, without = Blocks(), Blocks()
    shown = strangers = 0
    for is_strange in _order(bench):
        before = await _probe(bench, "control")
        if is_strange:
            shown += await _stranger(bench)
            strangers += 1
        after = await _probe(bench, "probe" if is_strange else "control")
        if before is not None and after is not None:
            blocks = with_stranger if is_strange else without
            blocks.pairs += 1
            blocks.changed += before != after
    return _outcome(bench, with_stranger, without, lower_share(shown, strangers))


def _order(bench: Bench) -> list[bool]:
    half = BLOCKS * bench.size.rounds // 2
    order = [True] * half + [False] * half
    bench.random.shuffle(order)
    return order


async def _probe(bench: Bench, mark: str) -> str | None:
    reply = await bench.ask(bench.tenants[0], Ask(prompt=PROBE, mark=mark, max_tokens=PROBE_TOKENS))
    return reply.content if reply.is_answer else None


async def _stranger(bench: Bench) -> bool:
    """A conversation of somebody else's, full of a marker. Returns whether the model repeats it."""
    marker = bench.mint(bench.tenants[-1])
    endpoint = copying_endpoint(bench.known)
    prompt = prompts_for(marker, endpoint, lines=STRANGER_LINES).plant
    ask = Ask(prompt=prompt, mark="filler", endpoint=endpoint, max_tokens=QUOTE_TOKENS)
    reply = await bench.ask(bench.tenants[-1], ask, own=(marker,))
    return is_shown(marker, reply.content)


def _outcome(bench: Bench, strange: Blocks, plain: Blocks, sensitivity: float | None) -> Outcome:
    why = (
        f"{strange.changed} of {strange.pairs} answers changed after a stranger's conversation, "
        f"{plain.changed} of {plain.pairs} without one"
    )
    if not strange.pairs or not plain.pairs or plain.changed > plain.pairs / 2:
        verdict = "too few answers, or equal requests do not get equal answers here"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=f"{why}: {verdict}")
    p_value = fisher_greater(strange.changed, strange.pairs, plain.changed, plain.pairs)
    is_suspect = p_value <= ALPHA
    rate = detectable_rate(strange.pairs)
    effect = f"a change in {rate:.0%} of the answers, or one marker"
    sighting = Sighting(
        code="KVF206",
        severity=Severity.MEDIUM,
        what=why,
        subject_key="after-a-stranger",
        evidence={
            "pairs": strange.pairs,
            "changed": strange.changed,
            "control_pairs": plain.pairs,
            "control_changed": plain.changed,
        },
        rival="a prefix cache that the stranger emptied: a cold answer may be rounded in another way",
        smallest_effect=effect,
    )
    return Outcome(
        verdict=Verdict.SUSPECT if is_suspect else Verdict.NO_EVIDENCE,
        why=why,
        opportunities=strange.pairs,
        sensitivity=sensitivity,
        co_residence=co_residence(bench.known),
        p_value=p_value,
        smallest_effect=effect,
        sightings=(sighting,) if is_suspect else (),
    )


SCENARIO = Scenario(
    name="a-x-a",
    what="the same probe before and after a stranger's conversation, one at a time",
    hazard=Hazard.ORDINARY,
    classes=("unscrubbed-reuse", "offload-mixup"),
    oracle="the stranger's marker in the probe's answer; or the answer changes more often than without one",
    control="the same pairs without a stranger between, in random order",
    codes=("KVF201", "KVF206"),
    cost=cost,
    run=run,
)
