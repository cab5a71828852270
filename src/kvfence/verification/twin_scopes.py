"""The scopes in which the twin and the shipped cores are compared: one set of bounds, said to both.

Rules: all of them close. Messages are neither lost nor repeated, at most one node dies and does not come
back, and no timer fires but those that a scope names; so the twin needs no bound of its own. Every prompt
ends in the middle of its last page, and every answer has two tokens: the writer's, and that of one step.
"""

from dataclasses import dataclass, replace

from kvfence.protocol.words import TimerKind
from kvfence.verification.scopes import Scope, Weather, small
from kvfence.world import Ask, WorldConfig
from kvfence.world import happenings as h

_PAGE_TOKENS = 2
_CONTEXT_TOKENS = 64
_ANSWER_TOKENS = 2
_ANY_NUMBER = 99  # of timers; each can fire once for a lease or a request


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinScope:
    """One bounded world. `remote` is pages of a prompt; the other sizes are pages of the two pools."""

    name: str
    what: str
    requests: int = 1
    attempts: int = 1  # that a request can come to need
    usable: int  # of decode, as admission counts
    spare: int = 0
    remote: int = 1
    sources: int = 2
    retries: int = 0
    abort: bool = False
    lease_timer: bool = False
    queue_timer: bool = False
    crash: bool = False

    @property
    def leases(self) -> int:
        """How many leases can be granted."""
        return self.requests * self.attempts

    def constants(self, mutant: str) -> dict[str, str]:
        """Return the constants of the model, as TLC reads them."""
        return {
            "Requests": str(self.requests),
            "Attempts": str(self.attempts),
            "Pages": str(self.usable + self.spare),
            "Usable": str(self.usable),
            "Remote": str(self.remote),
            "Sources": str(self.sources),
            "Retries": str(self.retries),
            "Abort": _tla(flag=self.abort),
            "LeaseTimer": _tla(flag=self.lease_timer),
            "QueueTimer": _tla(flag=self.queue_timer),
            "Crash": _tla(flag=self.crash),
            "Mutant": f'"{mutant}"',
        }

    def for_cores(self) -> Scope:
        """Return the same scope for the explorer. Requests are not taken for alike here, nor in the twin."""
        weather = Weather(
            leave=self.requests if self.abort else 0,
            lease_timer=_ANY_NUMBER if self.lease_timer else 0,
            queue_timer=_ANY_NUMBER if self.queue_timer else 0,
            crash_prefill=1 if self.crash else 0,
        )
        return Scope(
            name=self.name,
            what=self.what,
            asks=tuple(self._ask(request) for request in range(1, self.requests + 1)),
            weather=weather,
            config=self._config(),
            restarts=False,
        )

    def admits(self, happening: h.Happening) -> bool:
        """Tell whether the twin has this happening; those that it has not are left out of the exploration."""
        if isinstance(happening, h.Fire):
            kinds = {TimerKind.LEASE: self.lease_timer, TimerKind.QUEUE: self.queue_timer}
            return kinds.get(happening.timer.kind, False)
        return not isinstance(happening, h.Announce | h.Reconnect)

    def _ask(self, request: int) -> Ask:
        prompt_tokens = self.remote * _PAGE_TOKENS - 1
        first = 1_000 * request
        return Ask(request, f"tenant {request}", tuple(range(first, first + prompt_tokens)), _ANSWER_TOKENS)

    def _config(self) -> WorldConfig:
        """One chunk and one batch a prompt."""
        config = small(
            prefill_pages=self.sources,
            decode_pages=self.usable,
            spare=self.spare,
            page_tokens=_PAGE_TOKENS,
            context_tokens=_CONTEXT_TOKENS,
            batch_pages=self.remote,
            chunk_tokens=self.remote * _PAGE_TOKENS,
        )
        return replace(config, router=replace(config.router, retries_max=self.retries))


def _tla(*, flag: bool) -> str:
    return "TRUE" if flag else "FALSE"


TWIN_SCOPES = (
    TwinScope(name="straight", what="one request, nothing goes wrong", usable=2),
    TwinScope(name="abort", what="its client may leave at any moment", usable=2, abort=True),
    TwinScope(
        name="deadline",
        what="its client may leave, the lease's deadline may pass",
        usable=2,
        abort=True,
        lease_timer=True,
    ),
    TwinScope(
        name="two-pages",
        what="the same with a prompt of two pages",
        usable=3,
        remote=2,
        sources=3,
        abort=True,
        lease_timer=True,
    ),
    TwinScope(
        name="crash",
        what="the prefill node may die; only its cut frees",
        usable=2,
        queue_timer=True,
        crash=True,
    ),
    TwinScope(
        name="refusal",
        what="two requests, room for one: the second is refused, waits and is opened again",
        requests=2,
        attempts=2,
        usable=2,
    ),
    TwinScope(
        name="retry",
        what="death, abort and deadlines, with one recompute",
        attempts=2,
        usable=2,
        retries=1,
        abort=True,
        lease_timer=True,
        queue_timer=True,
        crash=True,
    ),
    TwinScope(
        name="room",
        what="two requests, room for one, clients leave, the queue has a deadline",
        requests=2,
        attempts=2,
        usable=2,
        abort=True,
        queue_timer=True,
    ),
    TwinScope(
        name="pair",
        what="two requests at once, clients leave at any moment",
        requests=2,
        usable=4,
        sources=4,
        abort=True,
    ),
)
