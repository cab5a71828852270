"""Where the band begins: the edge between prompts that are read and longer ones that are not.

It is the egg-drop problem: a prompt that is read costs a full prefill, one that is refused or left unread
almost nothing. So the search comes from above, in steps that spend at most two prompts that are read; then
the edge itself is asked, one below, at and one above, with and without `max_tokens`.

What it does not do: find the edge of a server that hangs.
"""

from dataclasses import dataclass, replace

from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Bench, Outcome, Sighting
from kvfence.check.scenarios.boundary_measure import Measured, ask_long, limit_in
from kvfence.check.scenarios.boundary_plan import EDGE_EGGS, reach, tries_for
from kvfence.check.scenarios.boundary_prompt import ANSWER_TOKENS, Form, long_prompt
from kvfence.check.scenarios.boundary_reading import Judged, Reading, Yardstick, judge
from kvfence.report import Severity


@dataclass(frozen=True, slots=True)
class Bracket:
    """`read` is the longest prompt known to be read, `unread` the shortest known not to be."""

    read: int
    unread: int
    eggs: int = EDGE_EGGS

    def next_length(self, resolution: int) -> int | None:
        """The next length to ask; None when the bracket is narrow enough, or the eggs are spent."""
        steps = -(-(self.unread - self.read) // resolution) - 1
        if steps <= 0 or self.eggs == 0:
            return None
        tries = tries_for(steps, self.eggs)
        down = reach(tries - 1, self.eggs - 1) + 1
        return max(self.unread - down * resolution, self.read + 1)

    def after(self, length: int, *, was_read: bool) -> "Bracket":
        """The bracket once that length is known."""
        if was_read:
            return replace(self, read=length, eggs=self.eggs - 1)
        return replace(self, unread=length)


async def locate_edge(
    bench: Bench,
    measured: Measured,
    yard: Yardstick,
    outcome: Outcome,
    last: tuple[Judged, Reply],
    context: int,
    sent: int,
) -> Outcome:
    """Add the edge, and what happens right at it, to the outcome."""
    control = yard.clock.points[-1][0]
    judged, reply = last
    notes: list[str] = []
    if judged.reading is Reading.READ:
        edge = context - ANSWER_TOKENS
    else:
        edge, notes = await _search(bench, measured, yard, Bracket(control, sent), reply)
    lines, sightings = await _around(bench, measured, yard, edge, context)
    return replace(
        outcome, notes=(*outcome.notes, *notes, *lines), sightings=(*outcome.sightings, *sightings)
    )


async def _search(
    bench: Bench, measured: Measured, yard: Yardstick, bracket: Bracket, reply: Reply
) -> tuple[int, list[str]]:
    """Narrow the bracket; a limit that the refusal names is taken at its word, and tested by what follows."""
    named = limit_in(reply.message, bracket.unread)
    if named is not None and named > bracket.read:
        return named - ANSWER_TOKENS, [f"the refusal names a limit of {named:,} tokens"]
    resolution = bench.size.resolution_tokens
    while (length := bracket.next_length(resolution)) is not None:
        judged = await ask_once(bench, measured, yard, length)
        if judged.reading is Reading.HUNG:
            break
        bracket = bracket.after(length, was_read=judged.reading is Reading.READ)
    note = f"prompts of {bracket.read:,} tokens are read, those of {bracket.unread:,} are not"
    return bracket.read, [note]


async def _around(
    bench: Bench, measured: Measured, yard: Yardstick, edge: int, context: int
) -> tuple[list[str], list[Sighting]]:
    """One below, at, and one above the edge, with and without `max_tokens`."""
    notes: list[str] = []
    sightings: list[Sighting] = []
    for tokens in (edge - 1, edge, edge + 1):
        for is_bounded in (True, False):
            judged = await ask_once(bench, measured, yard, tokens, is_bounded=is_bounded)
            how = "with" if is_bounded else "without"
            notes.append(f"{tokens:,} tokens {how} max_tokens: {judged.reading} ({judged.why})")
            if judged.reading is Reading.HUNG:
                return notes, sightings
            answered = judged.reading in {Reading.READ, Reading.UNREAD, Reading.TRUNCATED}
            counted = tokens if judged.usage_share is None else round(judged.usage_share * tokens)
            if answered and is_bounded and min(tokens, counted) + ANSWER_TOKENS > context:
                sightings.append(_over(tokens, context, judged))
    return notes, sightings


def _over(tokens: int, context: int, judged: Judged) -> Sighting:
    """A prompt whose answer does not fit, and that was answered."""
    return Sighting(
        code="KVF210",
        severity=Severity.HIGH,
        what=(
            f"a prompt of {tokens:,} tokens with {ANSWER_TOKENS} to come is over the context of {context:,}, "
            f"and was answered: {judged.reading}"
        ),
        subject_key="over-length-answered",
        evidence={"sent_tokens": tokens, "context_tokens": context, "first_s": round(judged.first_s, 3)},
        rival="a context that is larger than advertised, or an answer that was shortened to fit",
    )


async def ask_once(
    bench: Bench, measured: Measured, yard: Yardstick, tokens: int, *, is_bounded: bool = True
) -> Judged:
    """One prompt of that length, with `max_tokens` or without: then we leave after the first words."""
    prompt = long_prompt(
        measured.scale.count_for(tokens), yard.form or Form.LIST, bench.random, bench.known.counter.count
    )
    max_tokens = ANSWER_TOKENS if is_bounded else None
    reply = await ask_long(
        bench, prompt, tokens=tokens, mark="probe", clock=yard.clock, max_tokens=max_tokens
    )
    judged = judge(reply, prompt, tokens, yard)
    if reply.failure is Failure.HUNG_UP and judged.is_fast is False:
        # We left after the first words, as we wanted: its time says that it was read.
        return replace(judged, reading=Reading.READ, why="it took the time that reading takes")
    return judged
