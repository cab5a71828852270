"""How long things take on the fake server: prefill by prompt length, decode by token."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Prefill takes a + bL + cL² seconds for L tokens; each decode step takes `step_s`, whatever its rows."""

    a_s: float = 0.02
    b_s: float = 1e-4
    c_s: float = 0.0
    step_s: float = 0.02

    def prefill_s(self, tokens: int) -> float:
        """Seconds until a prompt of that many tokens is computed, alone on the node."""
        return self.a_s + self.b_s * tokens + self.c_s * tokens * tokens


QUICK = Clock()
# The public figures of the deployment with a context of a million: 200k tokens in 50 s, 385k in 120 s and
# 769k in 335 s. The curve goes through the first and the last, and meets the second within half a per cent.
PUBLIC_1M = Clock(a_s=0.05, b_s=1.8444e-4, c_s=3.2656e-10, step_s=0.02)
