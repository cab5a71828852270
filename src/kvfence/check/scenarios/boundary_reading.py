"""What one answer to a long prompt says: was it read, cut, refused, or left unread?

Rules it keeps:
- UNREAD wants two things at once: faster than the clock allows, and nothing recalled by a form that the
  control recalls; or usage that says so itself. Where the model recalls nothing even from a short prompt,
  time stands alone, and then it must also beat the least time of a control of a sixteenth of the length.
- A forgotten middle is no cut. One end missing is a cut where usage drops, or where it took less time than
  the whole prompt does and the control recalled both ends.
- What fits none of this is UNCLEAR, and says why.
"""

from dataclasses import dataclass
from enum import StrEnum, unique

from kvfence.check.reply import Failure, Reply
from kvfence.check.scenarios.boundary_prompt import Form, LongPrompt, Recall, recall_in
from kvfence.check.scenarios.clock import Clock

# A server that counts fewer tokens than this share of what was sent has dropped the others.
SHARE_READ_MIN = 0.9
# With less than this it has read a placeholder.
SHARE_UNREAD_MAX = 0.05
SHARE_OF_TIME_CUT = 0.75

_REFUSALS = frozenset({Failure.REFUSED, Failure.SERVER, Failure.ERROR_EVENT})


@unique
class Reading(StrEnum):
    """What became of a long prompt."""

    READ = "read"
    UNREAD = "unread"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    HUNG = "hung"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What the controls allow to conclude.

    `form` None: not even the control was recalled. `recalls_all`: the control brought back all five needles.
    `control_s` is the least time of a prompt of the control's length. `trusts_usage`: the server's counts of
    the clock's own prompts were about what was sent, so that those of a probe say something.
    """

    clock: Clock
    noise_s: float
    form: Form | None
    recalls_all: bool
    control_s: float
    count_error: float
    trusts_usage: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One probe, judged. `is_fast` None: the clock cannot tell at this length."""

    reading: Reading
    why: str
    first_s: float
    is_fast: bool | None = None
    recall: Recall | None = None
    usage_share: float | None = None


def first_s(reply: Reply) -> float:
    """Seconds to the first text; to the end where nothing was streamed."""
    return reply.total_s if reply.ttft_s is None else reply.ttft_s


def judge(reply: Reply, prompt: LongPrompt, sent_tokens: int, yard: Yardstick) -> Judged:
    """Judge the answer to a prompt of `sent_tokens` tokens as the server counts them."""
    took_s = first_s(reply)
    if reply.failure is not None and reply.failure is not Failure.HUNG_UP:
        reading, why = _of_failure(reply)
        return Judged(reading=reading, why=why, first_s=took_s)
    can_tell = yard.clock.can_tell(sent_tokens, yard.noise_s)
    is_fast = took_s < yard.clock.floor_s(sent_tokens) if can_tell else None
    recall = None if yard.form is None else recall_in(reply, prompt)
    counted = reply.usage.prompt_tokens if yard.trusts_usage else None
    share = None if counted is None else counted / sent_tokens
    if share is not None and share < SHARE_READ_MIN * (1 - yard.count_error):
        reading, why = _of_usage(share, recall, is_fast=is_fast)
    elif recall is None:
        reading, why = _of_time(took_s, yard, is_fast=is_fast)
    else:
        reading, why = _of_recall(recall, took_s, sent_tokens, yard, is_fast=is_fast)
    return Judged(reading=reading, why=why, first_s=took_s, is_fast=is_fast, recall=recall, usage_share=share)


def _of_failure(reply: Reply) -> tuple[Reading, str]:
    if reply.failure is Failure.TIMEOUT:
        return Reading.HUNG, f"no answer in {reply.total_s:.0f} s"
    if reply.status == 413:
        return Reading.UNCLEAR, "status 413: something refused the bytes, before anybody counted tokens"
    if reply.failure in _REFUSALS:
        return Reading.REFUSED, f"status {reply.status}" + (
            " with an error event" if reply.failure is Failure.ERROR_EVENT else ""
        )
    return Reading.UNCLEAR, f"no whole answer: {reply.failure}"


def _of_usage(share: float, recall: Recall | None, *, is_fast: bool | None) -> tuple[Reading, str]:
    nothing = recall is None or recall.count == 0
    if share <= SHARE_UNREAD_MAX and nothing and is_fast is not False:
        return Reading.UNREAD, f"usage itself says that {share:.1%} of the prompt was read"
    return Reading.TRUNCATED, f"usage says that {share:.1%} of the prompt was read"


def _of_time(took_s: float, yard: Yardstick, *, is_fast: bool | None) -> tuple[Reading, str]:
    if is_fast is None:
        return Reading.UNCLEAR, "the model recalls nothing, and its prefill is too fast for the clock"
    if not is_fast:
        return Reading.READ, "it took the time that reading takes; recall could not be tested"
    if took_s <= yard.control_s:
        return Reading.UNREAD, "it came sooner than the answer to a prompt of a fraction of its length"
    return Reading.UNCLEAR, "it came too fast for the clock, yet not sooner than a short prompt's answer"


def _of_recall(
    recall: Recall, took_s: float, sent_tokens: int, yard: Yardstick, *, is_fast: bool | None
) -> tuple[Reading, str]:
    if recall.count == 0:
        if is_fast:
            return Reading.UNREAD, "nothing of it was recalled, and it came too fast to have been read"
        return Reading.UNCLEAR, "nothing of it was recalled, at a time at which it may have been read"
    if recall.is_only_one_end and yard.recalls_all:
        if took_s < SHARE_OF_TIME_CUT * yard.clock.predict_s(sent_tokens):
            return Reading.TRUNCATED, "only one end of it was recalled, sooner than the whole can be read"
        return Reading.READ, "only one end was recalled, in the time that the whole takes: it was forgotten"
    if is_fast:
        return Reading.READ, "it was recalled, sooner than the clock expects"
    return Reading.READ, "it was recalled at a plausible time"
