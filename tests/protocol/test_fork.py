"""A forked core stands where the other one stands, and neither sees what the other does from then on."""

import pickle

import pytest
from tests.world.play import ask, submit_all, world_of

from kvfence.protocol import DecodeCore, NoPrefix, PrefillCore, RouterCore
from kvfence.protocol.fork import fork_decode, fork_prefill, fork_router
from kvfence.world import happenings


def fork(core):
    if isinstance(core, RouterCore):
        return fork_router(core)
    if isinstance(core, DecodeCore):
        return fork_decode(core)
    return fork_prefill(core, NoPrefix(), core.ledger.fork())


def everything(core):
    """All that a core holds, as bytes that are equal exactly when it is."""
    return pickle.dumps({name: value for name, value in core.__dict__.items() if name != "decisions"})


class Doubting:
    """Steps a fork of each core beside it: commands are the same, and the core itself is left alone."""

    def __init__(self):
        self.kinds = set()

    def step(self, core, event):
        self.kinds.add(type(core))
        before = everything(core)
        twin = fork(core)
        assert everything(twin) == before
        said = twin.step(event)
        assert everything(core) == before, f"{type(event).__name__} on a fork changed the core"
        assert core.step(event) == said
        assert everything(core) == everything(twin)
        return core, said


@pytest.mark.parametrize("leaves", [False, True])
def test_a_fork_goes_its_own_way_through_a_whole_run(leaves):
    world = submit_all(world_of(ask(1, 5, 7), ask(2, 3, 7), decode_pages=6, decode_spare_pages=0))
    world.stepper = doubting = Doubting()
    for turn in range(400):
        ready = list(world.enabled())
        if not ready:
            break
        if leaves and turn == 25:
            world.perform(happenings.Leave(2))
            continue
        world.perform(ready[turn % len(ready)])
    assert doubting.kinds == {RouterCore, PrefillCore, DecodeCore}
    assert world.findings == []
