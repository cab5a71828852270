"""What clients ask of a world, and what the model of a world answers.

The "model" is a function of request and position, so that a recomputed answer is the same answer. Two
requests share a prefix when their prompts begin with the same token ids.
"""

from dataclasses import dataclass

from kvfence.protocol.words import End

ANSWERS = 1_000_000  # token ids of answers begin here, far from those of prompts


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of one tenant. `stop_after` tokens the model ends by itself, if that is earlier."""

    request: int
    tenant: str
    prompt: tuple[int, ...]
    max_tokens: int
    stop_after: int | None = None

    def tokens(self, n: int) -> tuple[int, ...]:
        """Return the first `n` tokens of prompt and answer."""
        answer = (self.token_at(position) for position in range(len(self.prompt), n))
        return (*self.prompt[:n], *answer)

    def token_at(self, position: int) -> int:
        """Return the token at an absolute position."""
        if position < len(self.prompt):
            return self.prompt[position]
        return ANSWERS * self.request + position

    @property
    def answer_tokens(self) -> int:
        """How many tokens the answer has when nothing goes wrong."""
        return self.max_tokens if self.stop_after is None else min(self.max_tokens, self.stop_after)


@dataclass(frozen=True, slots=True)
class Client:
    """What a client has heard so far. `end` is None while it waits."""

    delivered: int = 0
    end: End | None = None
    is_lost: bool = False  # its router died: the connection broke
