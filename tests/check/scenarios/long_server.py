"""A scripted server that reads long prompts by a clock, recalls needles or not, and has a band of its own."""

import re
from dataclasses import dataclass

from tests.check.scripted_bench import answered, refused, silent

from kvfence.check.asks import Endpoint

QUICK = (0.02, 1e-4, 0.0)
PUBLIC_1M = (0.05, 1.8444e-4, 3.2656e-10)
NEEDLE = re.compile(r"Code word \w+ is (\w+)\.")
TEMPLATE_TOKENS = 12


@dataclass
class LongServer:
    """`fate` says what becomes of prompts of more than `pool` tokens."""

    clock: tuple = QUICK
    context: int = 4_096
    pool: int | None = None
    fate: str = "refuse"
    recalls: bool = True  # by instruction
    echoes: bool = True  # by continuation
    has_usage: bool = True
    speed: float = 1.0
    seen: int = 0

    def __call__(self, sent):
        self.seen += 1
        tokens = sent.tokens + TEMPLATE_TOKENS
        over = tokens + (sent.ask.max_tokens or 1) > min(self.context, self.pool or self.context)
        if over:
            return getattr(self, "_" + self.fate)(sent, tokens)
        return self._answer(sent.text, sent, tokens, tokens)

    def _seconds(self, tokens):
        a, b, c = self.clock
        return (a + b * tokens + c * tokens * tokens) / self.speed

    def _answer(self, text, sent, counted, read):
        cut = sent.ask.max_tokens
        words = self._say(text, sent)[: cut or 200]
        first = self._seconds(read)
        return answered(
            " ".join(words),
            prompt_tokens=counted if self.has_usage else None,
            completion_tokens=len(words),
            ttft_s=first,
            finish="length" if len(words) == cut else "stop",
        )

    def _say(self, text, sent):
        if sent.ask.endpoint is Endpoint.COMPLETIONS:
            last = text.split()[-1] if text.split() else "no"
            return [last] * 50 if self.echoes else ["and", "then", "it", "was"]
        needles = NEEDLE.findall(text)
        return needles if self.recalls and needles else ["the", "river", "was", "calm"]

    def _refuse(self, sent, tokens):
        limit = min(self.context, self.pool or self.context)
        return refused(f"maximum context length is {limit} tokens, your prompt has {tokens}")

    def _mute(self, sent, tokens):
        return refused("no")

    def _place(self, sent, tokens):
        """The incident: one token instead of the prompt, and usage of the whole."""
        return self._answer("", sent, tokens, 1)

    def _place_counted(self, sent, tokens):
        return self._answer("", sent, 1, 1)

    def _tail(self, sent, tokens):
        words = sent.text.split(" ")
        half = words[len(words) // 2 :]
        return self._answer(" ".join(half), sent, len(half), len(half))

    def _hidden_tail(self, sent, tokens):
        words = sent.text.split(" ")
        half = words[len(words) // 2 :]
        return self._answer(" ".join(half), sent, tokens, len(half))

    def _forget_head(self, sent, tokens):
        words = sent.text.split(" ")
        return self._answer(" ".join(words[len(words) // 2 :]), sent, tokens, tokens)

    def _forget_all(self, sent, tokens):
        return self._answer("", sent, tokens, tokens)

    def _hang(self, sent, tokens):
        return silent(sent.ask.timeout_s)

    def _too_large(self, sent, tokens):
        return refused("body too large", status=413)

    def _once(self, sent, tokens):
        """A placeholder the first time, and then never again."""
        self.fate = "forget_nothing"
        return self._place(sent, tokens)

    def _forget_nothing(self, sent, tokens):
        return self._answer(sent.text, sent, tokens, tokens)
