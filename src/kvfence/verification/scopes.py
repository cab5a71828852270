"""How much of the world an exploration looks at: sizes, requests, and how much weather.

A scope *closes* when every state that can be reached within it is visited; `depth` stops one that cannot.
What follows by itself is free; weather costs one unit of its budget each time. Free weather, because it
only answers something that has happened: a client sends its request, a dead node comes back, what is left
of an orphaned write never lands, a dead peer is taken for lost, a node that is not known says
hello, a connection is made again; and when nothing else is under way, a timer fires, or a node that is
thought to be full says hello.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches

from kvfence.protocol import DecodeConfig, PrefillConfig, RouterConfig
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import TimerKind
from kvfence.world import Ask, Piece, WorldConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often each thing may happen in one run."""

    leave: int = 0  # clients that go away
    drop: int = 0  # control messages that are lost
    repeat: int = 0  # control messages that arrive twice
    fail_loud: int = 0  # batches given up without proof
    fail_quiet: int = 0  # batches given up with proof
    cut_fails: int = 0  # cuts that cannot be proven
    crash_router: int = 0
    crash_prefill: int = 0
    crash_decode: int = 0
    pause: int = 0
    stray: int = 0  # events that should not come: an executor speaks of what is no row yet
    hello: int = 0  # hellos that tell nothing new
    suspect: int = 0  # living peers that are taken for lost
    request_timer: int = 0  # timers that fire while something else is under way
    queue_timer: int = 0
    lease_timer: int = 0
    close_retry_timer: int = 0
    growth_timer: int = 0
    batch_timer: int = 0
    stale_timer: int = 0  # timers that ring as they were set before they were set anew, or taken back

    def counts(self) -> tuple[int, ...]:
        """The budgets in the order of the fields."""
        return tuple(getattr(self, one.name) for one in fields(self))


NAMES = tuple(one.name for one in fields(Weather))
COST = {name: place for place, name in enumerate(NAMES)}
TIMER_COST = {kind: COST[f"{kind.name.lower()}_timer"] for kind in TimerKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A named exploration. `kinds` are groups of requests that are alike and interchangeable."""

    name: str
    what: str
    asks: tuple[Ask, ...]
    weather: Weather = field(default_factory=Weather)
    config: WorldConfig
    kinds: tuple[tuple[int, ...], ...] = ()
    depth: int | None = None  # None: it closes
    restarts: bool = True  # what died may come back

    @property
    def by_number(self) -> Mapping[int, Ask]:
        """The requests by their numbers."""
        return {ask.request: ask for ask in self.asks}

    def kind_of(self) -> dict[int, int]:
        """The kind of each request that has one."""
        return {request: kind for kind, group in enumerate(self.kinds, 1) for request in group}


def small(
    *,
    prefills: int = 1,
    decodes: int = 1,
    prefill_pages: int = 1,
    decode_pages: int = 2,
    spare: int = 1,
    page_tokens: int = 1,
    context_tokens: int = 8,
    batch_pages: int = 1,
    retries_max: int = 1,
    chunk_tokens: int = 8,
    rows_max: int = 4,
    piece: Piece = Piece.PAGE,
    has_prefix_cache: bool = False,
    quarantine_percent_max: int = 50,
) -> WorldConfig:
    """A config of few pages of few tokens. After `retries_max` unanswered Close comes the cut."""
    return WorldConfig(
        prefills=prefills,
        decodes=decodes,
        page_tokens=page_tokens,
        prefill_pages=prefill_pages,
        decode_pages=decode_pages,
        decode_spare_pages=spare,
        chunk_tokens=chunk_tokens,
        rows_max=rows_max,
        piece=piece,
        has_prefix_cache=has_prefix_cache,
        router=RouterConfig(context_tokens=context_tokens, page_tokens=page_tokens),
        prefill=PrefillConfig(page_bytes=1, page_tokens=page_tokens, batch_bytes=batch_pages),
        decode=DecodeConfig(
            page_tokens=page_tokens,
            close_retries_max=retries_max,
            quarantine_percent_max=quarantine_percent_max,
        ),
    )


def ask(request: int, tenant: str, prompt: int, answer: int, *, shared: int = 0) -> Ask:
    """A request with a prompt of its own; its first `shared` tokens are those of every such request."""
    own = tuple(1_000 * request + n for n in range(shared, prompt))
    return Ask(request, tenant, (*range(1, shared + 1), *own), answer)


def scope_named(name: str, scopes: Mapping[str, Scope]) -> Scope:
    """The scope of that name. Raises OperatorError with a suggestion."""
    scope = scopes.get(name)
    if scope is None:
        close = get_close_matches(name, scopes, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise OperatorError(f"there is no scope {name!r}: {hint}choose of {', '.join(scopes)}")
    return scope
