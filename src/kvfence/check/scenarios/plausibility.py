"""plausibility: can usage, finish reasons and endings of ordinary answers be true?

Each answer is held against its own request: as many prompt tokens as were sent, no more completion tokens
than were allowed, no more cached tokens than there are, an end for a reason that fits, and no error dressed
as a success.

Rules it keeps: no text is judged. What the model says is its own affair; a count that cannot be true is one
even when everything else is well. It waits for no attack and needs no second tenant.
"""

from collections import Counter
from dataclasses import dataclass

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.boundary_measure import Scale, scale_of
from kvfence.check.scenarios.filler import filler, nonce
from kvfence.check.scenarios.mixed_constraints import SLACK_CHUNKS, is_over
from kvfence.check.statistics import lower_share
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

LENGTHS = (40, 160, 640)
MAX_TOKENS = (1, 8, 24)
AT_ONCE = 3
SLACK_TOKENS = 24
SLACK_SHARE = 0.1
ASK_S = 10.0

_CODES = {
    "error inside a 200": ("KVF214", Severity.HIGH),
    "longer than its max_tokens": ("KVF211", Severity.HIGH),
}
_OTHERS = ("KVF213", Severity.MEDIUM)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request with the run's own count of its prompt, and its reply."""

    ask: Ask
    reply: Reply

    @property
    def counts(self) -> tuple[int, int] | None:
        """(own count, server's count) of the prompt."""
        said = self.reply.usage.prompt_tokens
        own = self.ask.prompt_tokens
        return None if said is None or own is None else (own, said)


def cost(_known: Known, size: Size) -> Cost:
    """Each length with each `max_tokens`, streamed and not."""
    of_each = 2 * size.rounds
    requests = len(LENGTHS) * len(MAX_TOKENS) * of_each
    return Cost(
        requests=requests,
        prompt_tokens=sum(LENGTHS) * len(MAX_TOKENS) * of_each,
        completion_tokens=sum(MAX_TOKENS) * len(LENGTHS) * of_each,
        seconds=requests / AT_ONCE * ASK_S,
    )


async def run(bench: Bench) -> Outcome:
    """Ask ordinary things in ordinary ways, three at once, and hold the answers against the requests."""
    sent: list[Sent] = []
    for round_index in range(2 * bench.size.rounds):
        for length in LENGTHS:
            asks = [_ask(bench, length, limit, is_streaming=round_index % 2 == 0) for limit in MAX_TOKENS]
            replies = await together(
                bench.ask(bench.tenants[index % len(bench.tenants)], ask) for index, ask in enumerate(asks)
            )
            sent += [Sent(ask, reply) for ask, reply in zip(asks, replies, strict=True)]
    return _outcome(bench, sent)


def _ask(bench: Bench, length: int, limit: int, *, is_streaming: bool) -> Ask:
    count = bench.known.counter.count
    head = nonce(bench.random)
    text = f"{head} {filler(max(length - count(head) - 1, 1), bench.random, count)}"
    return Ask(
        prompt=text,
        prompt_tokens=count(text),
        max_tokens=limit,
        is_streaming=is_streaming,
        hang_up_after_chunks=limit * 2 + 16,
    )


def faults_of(one: Sent, scale: Scale, error: float) -> list[str]:
    """What cannot be true of one answer."""
    reply, limit = one.reply, one.ask.max_tokens or 0
    if reply.failure is Failure.ERROR_EVENT:
        return ["error inside a 200"]
    if reply.failure is not None and reply.failure is not Failure.HUNG_UP:
        return []
    usage, finish = reply.usage, reply.finish
    faults = []
    if is_over(reply, limit):
        faults.append("longer than its max_tokens")
    if usage.cached_tokens is not None and usage.cached_tokens > (usage.prompt_tokens or 0):
        faults.append("more cached tokens than prompt tokens")
    elif usage.cached_tokens and usage.cached_tokens == usage.prompt_tokens:
        # Each prompt begins with words that nobody sent before.
        faults.append("a new prompt cached as a whole")
    if finish == "length" and usage.completion_tokens is not None and usage.completion_tokens < limit:
        faults.append("finish length below its max_tokens")
    if usage.completion_tokens is not None:
        pieces = len(reply.chunk_times_s)
        if pieces > usage.completion_tokens + SLACK_CHUNKS:
            faults.append("more pieces of text than completion tokens")
    if one.counts is not None and _is_off(one.counts, scale, error):
        faults.append("prompt tokens that were not sent")
    return faults


def _is_off(counts: tuple[int, int], scale: Scale, error: float) -> bool:
    """Whether the server counts another prompt than was sent, by what it counts of the others."""
    own, said = counts
    expected = scale.sent(own)
    share = SLACK_SHARE + (0.0 if scale.is_measured else error)
    return abs(said - expected) > SLACK_TOKENS + share * expected


def _robust_scale(sent: list[Sent]) -> Scale:
    """The scale of the medians: one count that is wrong does not move it."""
    counts = [one.counts for one in sent if one.counts is not None]
    medians = []
    for own in sorted({_bucket(own) for own, _ in counts}):
        group = sorted(pair for pair in counts if _bucket(pair[0]) == own)
        by_difference = sorted(group, key=lambda pair: pair[1] - pair[0])
        medians.append(by_difference[len(by_difference) // 2])
    return scale_of(medians)


def _bucket(own: int) -> int:
    """Which of the lengths a count belongs to."""
    return min(LENGTHS, key=lambda length: abs(length - own))


def _outcome(bench: Bench, sent: list[Sent]) -> Outcome:
    scale = _robust_scale(sent)
    faults = Counter(fault for one in sent for fault in faults_of(one, scale, bench.known.counter.error))
    answers = sum(one.reply.is_answer for one in sent)
    counted = sum(one.counts is not None for one in sent if one.reply.is_answer)
    notes = _notes(sent)
    if faults:
        why = ", ".join(f"{count} with: {fault}" for fault, count in faults.items())
        return Outcome(
            verdict=Verdict.EXPOSED,
            why=f"of {len(sent)} answers: {why}",
            opportunities=len(sent),
            sightings=tuple(_sighting(fault, count, len(sent)) for fault, count in faults.items()),
            notes=notes,
        )
    return Outcome(
        verdict=Verdict.NO_EVIDENCE if answers else Verdict.INCONCLUSIVE,
        why=f"{answers} of {len(sent)} requests were answered, {counted} with usage; all of it can be true",
        opportunities=answers,
        co_residence=1.0,  # an answer is held against its own request
        sensitivity=lower_share(counted, answers),
        smallest_effect=f"{SLACK_SHARE:.0%} and {SLACK_TOKENS} tokens of a prompt",
        notes=notes,
    )


def _notes(sent: list[Sent]) -> tuple[str, ...]:
    streamed = [one.reply for one in sent if one.ask.is_streaming and one.reply.is_answer]
    long = [reply for reply in streamed if (reply.usage.completion_tokens or 0) > SLACK_CHUNKS]
    if long and all(len(reply.chunk_times_s) <= 1 for reply in long):
        return ("streams come in one piece: a time to first token is a time to the end here",)
    return ()


def _sighting(fault: str, count: int, of: int) -> Sighting:
    code, severity = _CODES.get(fault, _OTHERS)
    return Sighting(
        code=code,
        severity=severity,
        what=f"{count} of {of} answers: {fault}",
        subject_key=fault.replace(" ", "-"),
        evidence={"answers": of, "with_fault": count},
        rival="a gateway that counts or closes differently from the server behind it",
    )


SCENARIO = Scenario(
    name="plausibility",
    what="ordinary requests whose usage, finish reasons and endings must fit",
    hazard=Hazard.ORDINARY,
    classes=("rejected-continues", "false-completion", "row-mixup"),
    oracle="counts that contradict the request or each other; an error event inside a stream of status 200",
    control="the server's own counts of the other prompts of the same run",
    codes=("KVF211", "KVF213", "KVF214"),
    cost=cost,
    run=run,
    is_in_quick=True,
)
