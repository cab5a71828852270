"""full-pool: prompts that come once fill the pool, while marker prompts are used again at growing distances.

Rules it keeps: a match that is not pinned is evicted between being found and being used. That takes a full
pool, and a prompt that has nearly been evicted when it comes again; so each wave brings a new marker prompt,
and each of these is asked again one, three and thirteen waves later. How large the pool is nobody says from
outside: some contexts are written, up to a bound, and cached counts tell whether a prompt that was used
before had been evicted. If none ever was, nothing was tried. The A/A control is the same re-use before the
pool fills.
"""

import dataclasses

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need
from kvfence.check.markers import Marker
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Size
from kvfence.check.scenarios.quoting import (
    AT_ONCE,
    CONTROLS,
    LINES_MAX,
    Tally,
    judged,
    quote_of,
    quote_serially,
    quotes_cost,
    tenant_at,
)
from kvfence.check.together import together
from kvfence.report import Cost, Verdict

AGES = (1, 3, 13)  # waves after which a prompt comes again
REUSED_MAX = 1 + len(AGES)  # of one wave: a new prompt, and one of each age
FILLERS = AT_ONCE  # beside the re-used ones
FILLER_LINES = 24  # about 400 tokens
TOKENS_A_LINE = 17
CONTEXTS_WRITTEN = 3  # a round
WRITTEN_MAX = 65_536  # tokens a round
CONTEXT_IF_UNKNOWN = 8_192
CALM_WAVES = 6


def waves_of(known: Known, size: Size) -> int:
    """How many waves of one-off prompts write the pool, as far as it can be guessed."""
    wanted = min(CONTEXTS_WRITTEN * (known.context_tokens or CONTEXT_IF_UNKNOWN), WRITTEN_MAX)
    waves = size.rounds * -(-wanted // (FILLERS * _filler_lines(known) * TOKENS_A_LINE))
    # Some prompts must live to their last age.
    return max(AGES[-1] + 3, waves)


def cost(known: Known, size: Size) -> Cost:
    """The control, re-use alone, and the waves."""
    waves = waves_of(known, size)
    fillers = quotes_cost(waves * FILLERS, lines=_filler_lines(known), at_once=FILLERS)
    reused = quotes_cost((waves + CALM_WAVES) * REUSED_MAX, lines=LINES_MAX, at_once=REUSED_MAX)
    return quotes_cost(CONTROLS, lines=LINES_MAX) + fillers + reused


async def run(bench: Bench) -> Outcome:
    """Use prompts again, first alone, then in a pool that fills."""
    control, beside, probes = await quote_serially(bench), Tally(), Tally()
    calm_use, reused = _Reused(bench), _Reused(bench)
    for _ in range(CALM_WAVES):
        await calm_use.wave(beside, fillers=0)
    for _ in range(waves_of(bench.known, bench.size)):
        await reused.wave(probes, fillers=FILLERS)
    if reused.evictions == 0:
        return _never_full(probes)
    evicted = f"re-used prompts had been evicted {reused.evictions} times"
    notes = (evicted if reused.evictions else "whether the pool was full could not be seen",)
    return judged(bench, probes, beside, control, key="full-pool", what="re-use in a full pool", notes=notes)


class _Reused:
    """Marker prompts, one more each wave. `evictions` is None where no cached counts are shown."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._prompts: list[tuple[str, Ask, Marker]] = []
        self._most_cached: dict[Marker, int] = {}
        self.evictions: int | None = 0 if Need.CACHED_TOKENS in bench.known.has else None

    async def wave(self, tally: Tally, *, fillers: int) -> None:
        """A new prompt, those whose age has come, and so many that come once, all at once."""
        bench = self._bench
        now = len(self._prompts)
        again = [self._prompts[now - age] for age in AGES if age <= now]
        self._prompts.append(self._new(now))
        asks = [self._prompts[-1], *again, *(_filler(bench, index) for index in range(fillers))]
        replies = await together(bench.ask(tenant, ask, own=(marker,)) for tenant, ask, marker in asks)
        for index, ((_, _, marker), reply) in enumerate(zip(asks, replies, strict=True)):
            if index <= len(again):
                tally.count(reply, marker)
                self._look_at(marker, reply)
            tally.prompt_tokens += reply.usage.prompt_tokens or 0

    def _new(self, number: int) -> tuple[str, Ask, Marker]:
        tenant = tenant_at(self._bench, number)
        marker = self._bench.mint(tenant)
        return tenant, quote_of(self._bench, marker, mark="probe", lines=LINES_MAX), marker

    def _look_at(self, marker: Marker, reply: Reply) -> None:
        cached = reply.usage.cached_tokens
        if self.evictions is None or cached is None:
            return
        # Less than was found before: what had been kept is gone.
        most = self._most_cached.get(marker, 0)
        self.evictions += cached < most
        self._most_cached[marker] = max(most, cached)


def _filler(bench: Bench, index: int) -> tuple[str, Ask, Marker]:
    tenant = tenant_at(bench, index)
    marker = bench.mint(tenant)
    ask = quote_of(bench, marker, mark="filler", lines=_filler_lines(bench.known))
    return tenant, dataclasses.replace(ask, max_tokens=1), marker


def _filler_lines(known: Known) -> int:
    fitting = (known.context_tokens or CONTEXT_IF_UNKNOWN) // (4 * TOKENS_A_LINE)
    return max(2, min(FILLER_LINES, fitting))


def _never_full(probes: Tally) -> Outcome:
    why = (
        f"{probes.prompt_tokens:,} tokens were written, and no prompt that was used again had been evicted: "
        "the pool was never full, or has no prefix cache"
    )
    return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, opportunities=probes.answered)


SCENARIO = Scenario(
    name="full-pool",
    what="prompts that come once fill the pool while marker prompts are used again",
    hazard=Hazard.HEAVY,
    classes=("match-not-pinned", "step-outlives-pages", "key-collision"),
    oracle="a marker in an answer whose request was not given it; own markers lost more often than before",
    control="the same re-use before the pool fills",
    codes=("KVF201", "KVF206"),
    cost=cost,
    run=run,
)
