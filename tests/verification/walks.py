"""Scopes for tests, and a plain world that goes the same way as an exploration."""

from collections.abc import Iterator

from kvfence.protocol.decisions import CORRECT
from kvfence.verification.engine import Engine
from kvfence.verification.forking import fork_core
from kvfence.verification.layout import State
from kvfence.verification.moves import Move
from kvfence.verification.scopes import Scope, Weather, ask, small
from kvfence.world import Piece, World, make_world

ONE_PAGE = small(page_tokens=2, prefill_pages=1, decode_pages=1)
TWO = (ask(1, "anna", 1, 1), ask(2, "berta", 1, 1))
# Rows that grow, prompts of two pages, writes slot by slot, prefixes, two nodes of each kind.
WIDE = small(
    prefills=2,
    decodes=2,
    page_tokens=2,
    prefill_pages=4,
    decode_pages=4,
    piece=Piece.SLOT,
    has_prefix_cache=True,
)
THREE = (
    ask(1, "anna", 3, 2, shared=2),
    ask(2, "berta", 3, 2, shared=2),
    ask(3, "anna", 4, 2, shared=2),
)
WEATHERS = {
    "clients and messages": Weather(leave=1, drop=1, repeat=1),
    "crashes": Weather(crash_prefill=1, crash_decode=1, crash_router=1, hello=2),
    "pauses": Weather(pause=2, suspect=1, stray=1, stale_timer=1),
    "writes": Weather(fail_loud=2, fail_quiet=1, cut_fails=1, batch_timer=1, lease_timer=1),
}


def scope_of(weather: Weather, *, is_wide: bool = False, alike: bool = False) -> Scope:
    """A scope of a test."""
    asks, config = (THREE, WIDE) if is_wide else (TWO, ONE_PAGE)
    kinds = ((1, 2),) if alike else ()
    return Scope(name="test", what="", asks=asks, config=config, weather=weather, kinds=kinds)


class Copying:
    """A stepper that copies a core before it takes an event, and remembers nothing."""

    def step(self, core, event):
        twin = fork_core(core)
        return twin, twin.step(event)


def plain_world(scope: Scope) -> World:
    """A world that can be forked."""
    return make_world(scope.config, CORRECT, dict(scope.by_number), Copying())


def walk(engine: Engine, length: int, seed: int) -> Iterator[tuple[State, Move, State]]:
    """Steps of one run that a seed picks, from the start on."""
    state, at = engine.start(), seed
    for _ in range(length):
        moves = engine.enabled(state)
        if not moves:
            return
        at = (at * 6364136223846793005 + 1442695040888963407) % 2**64
        move = moves[(at >> 33) % len(moves)]
        new, findings = engine.after(state, move)
        assert not findings
        yield state, move, new
        state = new
