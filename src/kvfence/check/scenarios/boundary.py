"""boundary: is there a band of prompt lengths that the server answers and never reads?

Five parts: (1) the context, for almost nothing; (2) a clock of prefill, from short prompts; (3) one prompt
just below the context, which lies in every band that is wider, and, in longer runs, one that fills it to the
brim; (4) the edge, only if it is asked for; (5) between probes the connection is closed, and the lifeline has
to come back.

Rules it keeps: what looks unread or cut is confirmed twice, after a control at the clock's longest length;
where the budget does not hold that, it is suspect. It needs no foreign text: an answer that came too fast and
recalls nothing is the incident.
"""

from dataclasses import replace

from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario
from kvfence.check.scenarios.boundary_brim import Brim
from kvfence.check.scenarios.boundary_edge import ask_once, locate_edge
from kvfence.check.scenarios.boundary_measure import (
    Measured,
    Refused,
    ask_long,
    find_form,
    learn_context,
    measure_clock,
)
from kvfence.check.scenarios.boundary_outcome import hang, outcome_of, refusal, unconfirmed
from kvfence.check.scenarios.boundary_plan import (
    BRIM_TOKENS,
    CONFIRMATIONS,
    CONTEXT_MIN,
    cost,
    lengths_for,
    probes_brim,
)
from kvfence.check.scenarios.boundary_prompt import Form, LongPrompt, long_prompt
from kvfence.check.scenarios.boundary_reading import Judged, Reading, Yardstick, first_s, judge
from kvfence.check.scenarios.clock import Clock
from kvfence.check.stops import BudgetSpent
from kvfence.report import Verdict

# A probe below this share of the context lies in no band of interest.
PROBE_SHARE_MIN = 0.6
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
    if lengths.probe < PROBE_SHARE_MIN * context:
        why = (
            f"tokens can be counted within {bench.known.counter.error:.0%} only: "
            f"no prompt is sure to be just below the context of {context:,}"
        )
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    yard, _ = await find_form(bench, measured)
    outcome, last, yard = await _just_below(bench, measured, lengths.probe, yard, context)
    if measured.dropped:
        longest = f"the clock's own prompts of {measured.dropped[0]:,} tokens were too fast to have been read"
        outcome = replace(outcome, notes=(*outcome.notes, longest))
    if outcome.verdict is Verdict.NO_EVIDENCE and probes_brim(bench.size):
        outcome = await _at_the_brim(bench, measured, yard, outcome, context)
    if last[0].reading is Reading.REFUSED and probes_brim(bench.size):
        outcome = await _without_max_tokens(bench, measured, yard, outcome, lengths.probe, context)
    if bench.size.locates_edge and outcome.verdict is not Verdict.HANG:
        return await locate_edge(bench, measured, yard, outcome, last, context, lengths.probe)
    return outcome


def _tell_clock(bench: Bench, clock: Clock) -> None:
    """Let the report draw it: seconds to the first token of L tokens are a + b L + c L²."""
    how = f"fit on the lower envelope of {len(clock.points)} lengths"
    for name, value in (("a", clock.a_s), ("b", clock.b_s), ("c", clock.c_s)):
        bench.learned(f"clock.{name}", value, how)
    bench.learned("clock.per_token", clock.per_token_s, f"least that a token costs: {how}")


async def _just_below(
    bench: Bench, measured: Measured, tokens: int, yard: Yardstick, context: int
) -> tuple[Outcome, tuple[Judged, Reply], Yardstick]:
    """The probes that lie in every wide band, what they come to, and the last of them."""
    probes, yard = await _probe(bench, measured, yard, tokens, rounds=bench.size.rounds)
    judged = [(judge(reply, prompt, tokens, yard), reply) for prompt, reply in probes]
    return outcome_of(judged, tokens, context, yard), judged[-1], yard


async def _at_the_brim(
    bench: Bench, measured: Measured, yard: Yardstick, outcome: Outcome, context: int
) -> Outcome:
    """The longest prompt of all, with one token to come: it lies in bands of a few tokens.

    A refusal to the end says nothing here: many servers keep a few tokens back.
    """
    tokens = context - BRIM_TOKENS
    brim = Brim(context)
    probes, yard = await _probe(bench, measured, yard, tokens, rounds=1, brim=brim)
    judged = [(judge(reply, prompt, tokens, yard), reply) for prompt, reply in probes]
    at_brim = outcome_of(judged, tokens, context, yard)
    if at_brim.verdict in {Verdict.UNREAD, Verdict.TRUNCATED, Verdict.HANG}:
        return at_brim
    last, reply = judged[-1]
    counted = reply.usage.prompt_tokens
    said = "" if counted is None else f", {counted:,} by the server's count"
    note = f"{tokens:,} tokens with {BRIM_TOKENS} to come{said}: {last.reading} ({last.why})"
    return replace(outcome, notes=(*outcome.notes, note))


async def _without_max_tokens(
    bench: Bench, measured: Measured, yard: Yardstick, outcome: Outcome, tokens: int, context: int
) -> Outcome:
    """What was refused, asked once more without `max_tokens`: some servers check that on another path."""
    judged = await ask_once(bench, measured, yard, tokens, is_bounded=False)
    if judged.reading is Reading.HUNG:
        return hang(judged, tokens, context)
    note = f"{tokens:,} tokens without max_tokens: {judged.reading} ({judged.why})"
    return replace(outcome, notes=(*outcome.notes, note))


async def _probe(
    bench: Bench,
    measured: Measured,
    yard: Yardstick,
    tokens: int,
    *,
    rounds: int,
    brim: Brim | None = None,
) -> tuple[list[tuple[LongPrompt, Reply]], Yardstick]:
    """So many probes, all read; the first that is not is confirmed, or asked again, and ends them."""
    probes: list[tuple[LongPrompt, Reply]] = []

    async def ask() -> Judged:
        if brim is None:
            prompt = _prompt(bench, measured, yard, tokens)
            reply = await _ask(bench, prompt, tokens, yard, mark="probe")
        else:
            prompt, reply = await brim.ask(bench, measured, yard)
        probes.append((prompt, reply))
        return judge(reply, prompt, tokens, yard)

    for _ in range(rounds):
        last = await ask()
        if last.reading is not Reading.READ:
            break
    if last.reading is Reading.UNCLEAR and last.recall is not None:
        last = await ask()  # a weak model forgets now and then
    if last.reading in _SUSPICIOUS:
        seen = [(judge(reply, prompt, tokens, yard), reply) for prompt, reply in probes]
        try:
            yard = await _control_again(bench, measured, yard)
            for _ in range(CONFIRMATIONS):
                last = await ask()
                if last.reading is Reading.HUNG:
                    break
        except BudgetSpent as spent:
            spent.so_far = unconfirmed(seen, tokens, yard, f"{spent}")
            raise
    return probes, yard


async def _ask(bench: Bench, prompt: LongPrompt, tokens: int, yard: Yardstick, *, mark: str) -> Reply:
    """Ask for as many tokens as its form takes to be recalled."""
    return await ask_long(
        bench, prompt, tokens=tokens, mark=mark, clock=yard.clock, max_tokens=prompt.form.answer_tokens
    )


def _prompt(bench: Bench, measured: Measured, yard: Yardstick, tokens: int) -> LongPrompt:
    count = measured.scale.count_for(tokens)
    return long_prompt(count, yard.form or Form.LIST, bench.random, bench.known.counter.count)


async def _control_again(bench: Bench, measured: Measured, yard: Yardstick) -> Yardstick:
    """A control between two probes: the clock takes its time in, in case the server has become faster."""
    tokens = yard.clock.points[-1][0]
    prompt = _prompt(bench, measured, yard, tokens)
    reply = await _ask(bench, prompt, tokens, yard, mark="control")
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
