"""boundary: is there a band of prompt lengths that the server answers and never reads?

Five parts: (1) the context, for almost nothing; (2) a clock of prefill, from short prompts; (3) one prompt
just below the context, which lies in every band that is wider; (4) the edge, only if it is asked for;
(5) between probes the connection is closed, and the lifeline has to come back.

Rules it keeps: what looks unread or cut is confirmed twice, each time after a control at the clock's longest
length. It needs no foreign text: an answer that came too fast and recalls nothing is the incident.
"""

from dataclasses import replace

from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario
from kvfence.check.scenarios.boundary_edge import locate_edge
from kvfence.check.scenarios.boundary_measure import (
    Measured,
    Refused,
    ask_long,
    find_form,
    learn_context,
    measure_clock,
)
from kvfence.check.scenarios.boundary_outcome import outcome_of, refusal
from kvfence.check.scenarios.boundary_plan import CONFIRMATIONS, CONTEXT_MIN, Lengths, cost, lengths_for
from kvfence.check.scenarios.boundary_prompt import Form, LongPrompt, long_prompt
from kvfence.check.scenarios.boundary_reading import Judged, Reading, Yardstick, first_s, judge
from kvfence.check.scenarios.clock import Clock
from kvfence.report import Verdict

_SUSPICIOUS = (Reading.UNREAD, Reading.TRUNCATED)


async def run(bench: Bench) -> Outcome:
    """Find the context, read the clock, probe just below the context, and judge."""
    context = await learn_context(bench)
    if context is None or context < CONTEXT_MIN:
        said = "could not be read" if context is None else f"of {context} tokens is too small for a clock"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=f"the context {said}")
    lengths = lengths_for(context)
    measured = await measure_clock(bench, lengths)
    if isinstance(measured, Refused):
        return _without_clock(measured, context)
    _tell_clock(bench, measured.clock)
    if not measured.scale.is_measured:
        lengths = lengths_for(context, bench.known.counter.error)
    yard, _ = await find_form(bench, measured)
    probes, yard = await _probe(bench, measured, lengths, yard)
    sent = lengths.probe
    judged = [(judge(reply, prompt, sent, yard), reply) for prompt, reply in probes]
    outcome = outcome_of(judged, sent, context, yard)
    if measured.dropped:
        longest = f"the clock's own prompts of {measured.dropped[0]:,} tokens were too fast to have been read"
        outcome = replace(outcome, notes=(*outcome.notes, longest))
    if bench.size.locates_edge and outcome.verdict is not Verdict.HANG:
        return await locate_edge(bench, measured, yard, outcome, judged[-1], context, sent)
    return outcome


def _tell_clock(bench: Bench, clock: Clock) -> None:
    """Let the report draw it: seconds to the first token of L tokens are a + b L + c L²."""
    how = f"fit on the lower envelope of {len(clock.points)} lengths"
    for name, value in (("a", clock.a_s), ("b", clock.b_s), ("c", clock.c_s)):
        bench.learned(f"clock.{name}", value, how)
    bench.learned("clock.per_token", clock.per_token_s, f"least that a token costs: {how}")


async def _probe(
    bench: Bench, measured: Measured, lengths: Lengths, yard: Yardstick
) -> tuple[list[tuple[LongPrompt, Reply]], Yardstick]:
    """As many probes as the size wants, all read; the first that is not is confirmed, and ends them."""
    probes: list[tuple[LongPrompt, Reply]] = []
    for _ in range(bench.size.rounds):
        last = await _ask_probe(bench, measured, lengths.probe, yard, probes)
        if last.reading is not Reading.READ:
            break
    if last.reading in _SUSPICIOUS:
        for _ in range(CONFIRMATIONS):
            yard = await _control_again(bench, measured, yard)
            last = await _ask_probe(bench, measured, lengths.probe, yard, probes)
            if last.reading is Reading.HUNG:
                break
    return probes, yard


async def _ask_probe(
    bench: Bench,
    measured: Measured,
    tokens: int,
    yard: Yardstick,
    probes: list[tuple[LongPrompt, Reply]],
) -> Judged:
    prompt = long_prompt(
        measured.scale.count_for(tokens), yard.form or Form.LIST, bench.random, bench.known.counter.count
    )
    reply = await ask_long(bench, prompt, tokens=tokens, mark="probe", clock=yard.clock)
    probes.append((prompt, reply))
    return judge(reply, prompt, tokens, yard)


async def _control_again(bench: Bench, measured: Measured, yard: Yardstick) -> Yardstick:
    """A control between two probes: the clock takes its time in, in case the server has become faster."""
    tokens = yard.clock.points[-1][0]
    prompt = long_prompt(
        measured.scale.count_for(tokens), yard.form or Form.LIST, bench.random, bench.known.counter.count
    )
    reply = await ask_long(bench, prompt, tokens=tokens, mark="control", clock=yard.clock)
    if not reply.is_answer:
        return yard
    clock = yard.clock.with_points([(tokens, first_s(reply))])
    return replace(yard, clock=clock, control_s=dict(clock.points)[tokens])


def _without_clock(refused: Refused, context: int) -> Outcome:
    """A prompt of a sixteenth of the context that is refused says much; one that fails otherwise, nothing."""
    reply = refused.reply
    if reply.status is not None and 400 <= reply.status < 500 and reply.status not in {413, 429}:
        return refusal(reply, refused.tokens, context, f"status {reply.status}")
    why = f"the clock could not be read: a prompt of {refused.tokens:,} tokens got {reply.failure}"
    return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)


SCENARIO = Scenario(
    name="boundary",
    what="a prompt just below the advertised context, by a clock and by needles",
    hazard=Hazard.MAY_STOP_SERVER,
    classes=("rejected-continues", "false-completion"),
    oracle=(
        "answered with status 200 in less than half the time that its tokens cost on the clock, and none of "
        "its own needles recalled; or usage far below what was sent"
    ),
    control="prompts of the clock's longest length: read in their time, and recalled in the same form",
    codes=("KVF203", "KVF204", "KVF205", "KVF209", "KVF210"),
    cost=cost,
    run=run,
    is_in_quick=True,
)
