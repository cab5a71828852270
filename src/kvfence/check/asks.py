"""What is asked of a server: one request, before any dialect has been applied to it.

Rules it keeps: an Ask says what is wanted, not how this server spells it. The client turns it into the
fields, headers and path that the target's dialect knows.
"""

from dataclasses import dataclass, field
from enum import StrEnum, unique

TIMEOUT_S = 60.0  # of an ordinary request, unless the target is given longer


@unique
class Endpoint(StrEnum):
    """Which of OpenAI's two text endpoints."""

    CHAT = "chat"
    COMPLETIONS = "completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request.

    `prompt` is the text of one user message (chat) or the prompt itself (completions), or token ids
    (completions alone). `prompt_tokens` is the run's own count of it, if it has one. `max_tokens` None leaves
    the field out. `hang_up_after_s` and `hang_up_after_chunks` end the request from our side by closing its
    connection. `mark` says in reports what the request was for: "probe", "control", "filler", …
    `node` is one of the target's direct addresses, where the request must go to exactly that one.
    `timeout_s` is what a usual server is given; a target that is given longer lengthens it by as much.
    `is_heavy`: its prompt is long; one such request is in flight at a time, beside the lifeline.
    """

    prompt: str | tuple[int, ...]
    mark: str = "probe"
    endpoint: Endpoint | None = None  # None: the target's default
    system: str | None = None
    prompt_tokens: int | None = None
    max_tokens: int | None = 16
    temperature: float | None = 0.0
    seed: int | None = None
    n: int = 1
    stop: tuple[str, ...] = ()
    is_streaming: bool = True
    wants_logprobs: bool = False
    is_heavy: bool = False
    extra_body: dict[str, object] = field(default_factory=dict)
    extra_headers: dict[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    expected_s: float | None = None  # how long an honest server may take to read it, where that is known
    hang_up_after_s: float | None = None
    hang_up_after_chunks: int | None = None
    node: str | None = None
