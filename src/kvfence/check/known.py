"""What a run knows of its target: what the capability probe learned, and nothing that it only hopes."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class Need(StrEnum):
    """What a scenario cannot do without. One that lacks a need is *not tested*, with the reason."""

    COMPLETIONS = "the completions endpoint"
    STREAMING = "streaming"
    LOGPROBS = "logprobs"
    USAGE = "usage counts"
    CACHED_TOKENS = "cached-token counts"
    TWO_TENANTS = "two credentials that are two tenants"
    CONTEXT = "the advertised context"
    DETERMINISM = "equal answers to equal requests on an idle server"
    TOKEN_IDS = "prompts of token ids"  # noqa: S105 (a capability, no password)
    OWN_SERVER = "a server of one's own (--own-server)"
    HOOK = "a command that breaks something on it (`hook` in the profile)"
    OBEDIENCE = "a model that repeats what it is told to"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """Counts tokens of a text. `how`: ids, tokenize, usage or bytes; `error` is relative, 0.0 when exact."""

    count: Callable[[str], int]
    how: str
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one model at one endpoint.

    `noise_floor_s` is the spread of TTFT among equal short requests on the quiet server. `untestable` says
    why no scenario would be about this model, where that is so. `patience` is how many times longer
    than usual requests are waited for.
    """

    model: str
    has: frozenset[Need]
    counter: TokenCounter
    untestable: str | None = None
    context_tokens: int | None = None
    context_from: str | None = None
    noise_floor_s: float = 0.0
    short_ttft_s: float = 0.0
    is_loopback: bool = False
    engine: str | None = None
    nodes: tuple[str, ...] = ()  # direct addresses, where pinning is possible
    models: tuple[str, ...] = ()  # all names in the server's list, adapters too
    hook: tuple[str, ...] | None = None  # a command of the user's that breaks a path, and mends it
    lease_s: float | None = None  # how long prefill keeps a hand-off, as the profile says it
    patience: float = 1.0
    co_residence: float | None = None  # how often one tenant's repeats met what the first left; None: unknown

    @property
    def is_own_server(self) -> bool:
        """Whether nobody else is harmed when this server is held up: on loopback, or the user says so."""
        return self.is_loopback or Need.OWN_SERVER in self.has
