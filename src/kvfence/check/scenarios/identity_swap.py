"""identity-swap: the same tokens under another identity: another model or adapter, or another beginning.

A cache key that leaves out what changes the keys and values (the adapter, the weights, the dtype, what stands
before a page) gives a request the pages of another one. It shows where the server counts cached tokens.

Rules it keeps:
- The first model's own repeat has to hit, or nothing was there to be taken; a fresh prompt to the second
  model has to miss, or its hits say nothing.
- Two names that ever answer alike may be one model under two names (rounding can make the rest of their
  answers differ): then a hit is right, and the outcome is inconclusive.
- A long list is a gateway's: its models share no server and have prices of their own. None of it is asked.
- Images are not swapped: prompts here are text alone. The report says so.
"""

from dataclasses import dataclass

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.filler import filler, nonce
from kvfence.check.scenarios.identity_chain import Chained, chain_cost, play_chain
from kvfence.check.scenarios.saying import co_residence
from kvfence.check.statistics import lower_share
from kvfence.report import Cost, Severity, Verdict

ROUNDS = 4
ASKS = 4  # the first model, the second, the first again, and a fresh prompt to the second
PROMPT_TOKENS = 400
ANSWER_TOKENS = 16
HIT_SHARE = 0.5
HITS_MIN = 2
LISTED_MAX = 16
NOT_IMAGES = "images, audio and weight reloads were not swapped: this run sends text to names that are listed"


@dataclass(slots=True)
class Tally:
    """Rounds with counts, and hits of the swap, of the first model's repeat, and of fresh prompts."""

    rounds: int = 0
    swaps: int = 0
    repeats: int = 0
    fresh: int = 0
    alike: int = 0  # answers of both models that are one text


def cost(known: Known, size: Size) -> Cost:
    """Five requests a round for beginnings; four more where there is another model."""
    asks = ASKS * ROUNDS * size.rounds if other_of(known) else 0
    swaps = Cost(
        requests=asks,
        prompt_tokens=asks * PROMPT_TOKENS,
        completion_tokens=asks * ANSWER_TOKENS,
        seconds=asks * 10.0,
    )
    return swaps + chain_cost(size.rounds)


def other_of(known: Known) -> str | None:
    """Another name in the list than that of the target; none of a list that is a gateway's."""
    if len(known.models) > LISTED_MAX:
        return None
    return next((name for name in known.models if name != known.model), None)


async def run(bench: Bench) -> Outcome:
    """Swap beginnings, then models, and look at what was cached."""
    chained = await play_chain(bench)
    if chained.hits >= HITS_MIN and not chained.fresh:
        return _behind_another(chained)
    other = other_of(bench.known)
    if other is None:
        return _one_model(bench, chained)
    tally = Tally()
    for _ in range(ROUNDS * bench.size.rounds):
        await _round(bench, other, tally)
    return _outcome(bench, other, tally)


def _one_model(bench: Bench, chained: Chained) -> Outcome:
    is_blind = not chained.repeats or chained.hits
    listed = len(bench.known.models)
    lists = f"{listed} models, as gateways do" if listed > LISTED_MAX else "one model"
    return Outcome(
        verdict=Verdict.INCONCLUSIVE if is_blind else Verdict.NO_EVIDENCE,
        why=(
            f"{chained.hits} of {chained.rounds} prompts were cached behind another beginning, "
            f"{chained.repeats} of their own repeats"
        ),
        opportunities=chained.rounds,
        sensitivity=lower_share(chained.repeats, chained.rounds),
        co_residence=co_residence(bench.known),
        smallest_effect=f"{HITS_MIN} hits in {chained.rounds} prompts",
        notes=(f"the server lists {lists}: no other was swapped to", NOT_IMAGES),
    )


def _behind_another(chained: Chained) -> Outcome:
    what = (
        f"{chained.hits} of {chained.rounds} prompts whose beginning was never sent were mostly cached: the "
        "cache key leaves out what stands before a page"
    )
    sighting = Sighting(
        code="KVF207",
        severity=Severity.HIGH,
        what=what,
        subject_key="chain",
        evidence={"rounds": chained.rounds, "hits": chained.hits, "repeat_hits": chained.repeats},
        rival="a cache that reuses pages behind another beginning on purpose, and corrects them",
    )
    return Outcome(
        verdict=Verdict.EXPOSED,
        why=what,
        opportunities=chained.rounds,
        sightings=(sighting,),
        notes=(NOT_IMAGES,),
    )


async def _round(bench: Bench, other: str, tally: Tally) -> None:
    shared, own = _prompt(bench), _prompt(bench)
    first = await _ask(bench, shared, None, "filler")
    swapped = await _ask(bench, shared, other, "probe")
    again = await _ask(bench, shared, None, "control")
    fresh = await _ask(bench, own, other, "control")
    hits = [_is_hit(reply) for reply in (swapped, again, fresh)]
    if any(hit is None for hit in hits):
        return
    tally.rounds += 1
    tally.swaps += bool(hits[0])
    tally.repeats += bool(hits[1])
    tally.fresh += bool(hits[2])
    tally.alike += swapped.content == first.content


def _prompt(bench: Bench) -> str:
    count = bench.known.counter.count
    head = nonce(bench.random)
    return f"{head} {filler(PROMPT_TOKENS - count(head) - 1, bench.random, count)}"


async def _ask(bench: Bench, prompt: str, model: str | None, mark: str) -> Reply:
    extra: dict[str, object] = {} if model is None else {"model": model}
    ask = Ask(
        prompt=prompt,
        mark=mark,
        prompt_tokens=bench.known.counter.count(prompt),
        max_tokens=ANSWER_TOKENS,
        extra_body=extra,
    )
    return await bench.ask(bench.tenants[0], ask)


def _is_hit(reply: Reply) -> bool | None:
    """Whether most of the prompt was cached; None without an answer or without counts."""
    # The other model's name in an answer is what was asked for here.
    usage = reply.usage
    if reply.failure not in {None, Failure.OTHER_MODEL} or not usage.prompt_tokens:
        return None
    return None if usage.cached_tokens is None else usage.cached_tokens >= HIT_SHARE * usage.prompt_tokens


def _outcome(bench: Bench, other: str, tally: Tally) -> Outcome:
    why = (
        f"{tally.swaps} of {tally.rounds} prompts of {bench.known.model} were cached for {other}; "
        f"its own repeats {tally.repeats}, fresh prompts {tally.fresh}"
    )
    is_blind = not tally.repeats or tally.fresh
    is_alias = tally.alike > 0
    if is_blind or (tally.swaps and (is_alias or tally.swaps < HITS_MIN)):
        reason = "the controls do not hold" if is_blind else "the two names may be one model, or it was once"
        return Outcome(
            verdict=Verdict.INCONCLUSIVE,
            why=f"{why}: {reason}",
            opportunities=tally.rounds,
            notes=(NOT_IMAGES,),
        )
    sighting = Sighting(
        code="KVF207",
        severity=Severity.HIGH,
        what=f"{why}: the cache key leaves out which model computes",
        subject_key="identity",
        evidence={
            "rounds": tally.rounds,
            "swap_hits": tally.swaps,
            "repeat_hits": tally.repeats,
            "fresh_hits": tally.fresh,
            "answers_alike": tally.alike,
        },
        rival="two names of one set of weights whose answers differ by a system prompt or a template",
    )
    return Outcome(
        verdict=Verdict.EXPOSED if tally.swaps else Verdict.NO_EVIDENCE,
        why=why,
        opportunities=tally.rounds,
        sensitivity=lower_share(tally.repeats, tally.rounds),
        co_residence=co_residence(bench.known),
        smallest_effect=f"{HITS_MIN} hits in {tally.rounds} prompts",
        sightings=(sighting,) if tally.swaps else (),
        notes=(NOT_IMAGES,),
    )


SCENARIO = Scenario(
    name="identity-swap",
    what="the same tokens under another model or adapter of the server's list, or behind another beginning",
    hazard=Hazard.ORDINARY,
    classes=("key-omits-identity",),
    oracle="cached tokens for words that only another model, or another beginning, was sent with",
    control="the first prompt's repeat, which must hit; a fresh prompt to the second model, which must not",
    codes=("KVF207",),
    cost=cost,
    run=run,
    needs=frozenset({Need.CACHED_TOKENS}),
)
