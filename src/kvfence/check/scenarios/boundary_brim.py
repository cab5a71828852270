"""The prompt that fills the context to the brim: it lies in bands of a few tokens, which no other one meets.

A count that is off by ten tokens is refused there. So a refused prompt is shortened, word by word, until it
is not refused any more: a refusal costs its bytes and a moment. Where it names the server's own count, one
step is enough, and the prompt is as long as a prompt can be.

Rules it keeps: what was refused was read by nobody, so the same text, shortened, is new to every cache. What
was answered is never asked again.
"""

from dataclasses import dataclass

from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench
from kvfence.check.scenarios.boundary_measure import Measured, ask_long, numbers_in
from kvfence.check.scenarios.boundary_plan import BRIM_REFUSALS, BRIM_TOKENS
from kvfence.check.scenarios.boundary_prompt import Form, LongPrompt, long_prompt
from kvfence.check.scenarios.boundary_reading import Reading, Yardstick, judge

# A number of the refusal that is above the context by more than this share is no count of the prompt.
NAMED_SHARE_MAX = 0.05
SPARE_TOKENS = 2**BRIM_REFUSALS


@dataclass(slots=True)
class Brim:
    """Prompts at the brim. `refusals` are left for all of them together; `shorter` is what was learned."""

    context: int
    refusals: int = BRIM_REFUSALS
    shorter: int = 0

    async def ask(self, bench: Bench, measured: Measured, yard: Yardstick) -> tuple[LongPrompt, Reply]:
        """Ask one, shorter and shorter, until it is not refused, or there is no shorter one."""
        tokens = self.context - BRIM_TOKENS
        count = measured.scale.count_for(tokens)
        longest = long_prompt(
            count, yard.form or Form.LIST, bench.random, bench.known.counter.count, spare=SPARE_TOKENS
        )
        step = 1
        while True:
            prompt = longest.shorter_by(self.shorter)
            reply = await ask_long(
                bench, prompt, tokens=tokens, mark="probe", clock=yard.clock, max_tokens=BRIM_TOKENS
            )
            excess = self._excess(reply) or step
            is_last = self.refusals == 0 or self.shorter + excess > SPARE_TOKENS
            if is_last or judge(reply, prompt, tokens, yard).reading is not Reading.REFUSED:
                return prompt, reply
            self.refusals -= 1
            self.shorter += excess
            step *= 2

    def _excess(self, reply: Reply) -> int | None:
        """By how much the prompt was too long, as its refusal counts it."""
        top = self.context * (1 + NAMED_SHARE_MAX)
        counts = [number for number in numbers_in(reply.message or "") if self.context < number <= top]
        return min(counts) + BRIM_TOKENS - self.context if counts else None
