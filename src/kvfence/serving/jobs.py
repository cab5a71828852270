"""What passes between the HTTP API and the router: jobs in, deltas out.

A job is one choice of one request. The API validates, tokenises and detokenises; the router places the
job and returns its tokens. The API never sees a page; the router never sees text.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kvfence.engine import SamplingParams, TokenLogprobs
from kvfence.protocol.words import End


@dataclass(frozen=True, slots=True)
class Job:
    """One choice: `request_id` is drawn by the server, `domain` says who may share prefix pages."""

    request_id: str
    tenant: str
    domain: str
    tokens: tuple[int, ...]
    max_tokens: int | None
    sampling: SamplingParams


@dataclass(frozen=True, slots=True)
class TokenDelta:
    """One token, at its absolute position (the first one's is the prompt's length)."""

    token: int
    position: int
    logprobs: TokenLogprobs | None = None


@dataclass(frozen=True, slots=True)
class EndDelta:
    """The last delta of every stream. Counts are what was computed."""

    end: End
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


Delta = TokenDelta | EndDelta


class JobStream(Protocol):
    """The deltas of one job, in order, ending with exactly one EndDelta."""

    def __aiter__(self) -> AsyncIterator[Delta]:
        """Iterate over the deltas."""
        ...

    def cancel(self) -> None:
        """The client is gone or has enough (a stop string): abort. The stream still ends by EndDelta."""
        ...


class Frontend(Protocol):
    """What the API needs of the router."""

    @property
    def limit_tokens(self) -> int | None:
        """Largest prompt + max_tokens that any attempt can be served with; None while nodes are missing."""
        ...

    def submit(self, jobs: Sequence[Job]) -> list[JobStream]:
        """Admit all jobs together or none. Refusals arrive as an EndDelta with `EndReason.REFUSED`."""
        ...
