"""What `boundary` asks for: lengths, waits and cost, for the server's own context.

Rules it keeps: the first over-length probe lies 512 tokens below the context, hence in every band that is
wider; the clock's lengths end at a sixteenth of it. `cost` is what the plan shows before the start.
"""

from dataclasses import dataclass
from math import comb

from kvfence.check.known import Known
from kvfence.check.scenario import Size
from kvfence.check.scenarios.boundary_prompt import ANSWER_TOKENS
from kvfence.report import Cost

MARGIN_TOKENS = 512
BRIM_TOKENS = 1  # what is left for the answer to the longest prompt of all
BRIM_REFUSALS = 6  # by which the longest prompt is shortened until it is not refused
CLOCK_RUNS = 3
CLOCK_LENGTHS = 4
CONTROLS = 2  # of each form
FORMS = 2
CONFIRMATIONS = 2
EDGE_PROBES = 6  # just below, at and just above, each with and without max_tokens
EDGE_EGGS = 2  # accepted probes that the search for the edge may spend
CONTEXT_MIN = 1_024
# What is assumed where the server does not say its context before it is asked.
CONTEXT_ASSUMED = 131_072
# Above this a prompt is heavy: one at a time, beside the lifeline.
HEAVY_TOKENS = 2_048
SHORTEST_LONGEST = 512
# A server that is slower than this takes longer than the plan says: 2,000 tokens a second, growing as the
# public clock of a context of a million does.
PLAN_A_S, PLAN_B_S, PLAN_C_S = 0.5, 5e-4, 3.3e-10
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens as the server counts them: `clock` from the shortest to the longest, and the `probe`."""

    clock: tuple[int, ...]
    probe: int

    @property
    def control(self) -> int:
        """The clock's longest length: what controls are asked at."""
        return self.clock[-1]


def lengths_for(context: int, count_error: float = 0.0) -> Lengths:
    """Lengths for a context of at least CONTEXT_MIN. A counter that errs stays further from the limit."""
    longest = context // 16
    if longest < SHORTEST_LONGEST:
        longest = min(SHORTEST_LONGEST, context // 4)
    ratio = 4 if longest >= 4_096 else 2
    clock = tuple(longest // ratio**step for step in reversed(range(CLOCK_LENGTHS)))
    margin = min(MARGIN_TOKENS, context // 8)
    return Lengths(clock, context - margin - round(count_error * context))


def plan_s(tokens: int) -> float:
    """Seconds that a prompt of that length takes on a slow server."""
    return PLAN_A_S + PLAN_B_S * tokens + PLAN_C_S * tokens * tokens


def wait_s(tokens: int, predicted_s: float | None = None) -> float:
    """How long an answer is waited for before it counts as silence."""
    return WAIT_S + max(2 * plan_s(tokens), 5 * (predicted_s or 0.0))


def tries_for(steps: int, eggs: int = EDGE_EGGS) -> int:
    """Probes that find an edge among so many steps, when at most `eggs` of them may be accepted."""
    tries = 0
    while reach(tries, eggs) < steps:
        tries += 1
    return tries


def reach(tries: int, eggs: int) -> int:
    """Among how many steps that many probes find the edge: the egg-drop numbers."""
    return sum(comb(tries, broken) for broken in range(1, eggs + 1))


def cost(known: Known, size: Size) -> Cost:
    """The most that `boundary` uses, but for a server that is slower than the plan's clock."""
    context = known.context_tokens or CONTEXT_ASSUMED
    if context < CONTEXT_MIN:
        return Cost()
    lengths = lengths_for(context)
    controls = CONTROLS * FORMS + CONFIRMATIONS
    probes = size.rounds + CONFIRMATIONS
    # The clock's longest length is asked once: its controls are its other runs.
    asked = (*lengths.clock[:-1] * CLOCK_RUNS, lengths.control)
    tokens = sum(asked) + controls * lengths.control + probes * lengths.probe
    seconds = sum(map(plan_s, asked)) + controls * plan_s(lengths.control)
    seconds += (size.rounds + 1) * plan_s(lengths.probe) + 2 * WAIT_S
    basic = Cost(
        requests=1 + len(asked) + controls + probes,
        prompt_tokens=tokens + 32,
        completion_tokens=len(asked) + ANSWER_TOKENS * (controls + probes) + 1,
        seconds=seconds,
    )
    if probes_brim(size):
        basic += _brim_cost(context, lengths)
    return basic + _edge_cost(lengths, size) if size.locates_edge else basic


def probes_brim(size: Size) -> bool:
    """Whether a prompt that fills the context is asked, too: in runs of more than one round."""
    return size.rounds > 1 or size.locates_edge


def _brim_cost(context: int, lengths: Lengths) -> Cost:
    probes = 1 + CONFIRMATIONS
    return Cost(
        requests=probes + BRIM_REFUSALS + CONFIRMATIONS,
        prompt_tokens=(probes + BRIM_REFUSALS) * context + CONFIRMATIONS * lengths.control,
        completion_tokens=(probes + BRIM_REFUSALS) * BRIM_TOKENS + CONFIRMATIONS * ANSWER_TOKENS,
        seconds=2 * plan_s(context) + CONFIRMATIONS * plan_s(lengths.control) + WAIT_S,
    )


def _edge_cost(lengths: Lengths, size: Size) -> Cost:
    """A refused probe costs its bytes and a moment; at most eight are accepted."""
    steps = -(-(lengths.probe - lengths.control) // size.resolution_tokens)
    probes = tries_for(steps) + EDGE_PROBES
    return Cost(
        requests=probes,
        prompt_tokens=probes * (lengths.probe + MARGIN_TOKENS),
        completion_tokens=probes * ANSWER_TOKENS,
        seconds=probes + (EDGE_EGGS + EDGE_PROBES) * plan_s(lengths.probe + MARGIN_TOKENS),
    )
