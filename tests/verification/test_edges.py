"""What a process keeps of the free edges while it searches."""

from kvfence.protocol.decisions import CORRECT
from kvfence.verification import SCOPES
from kvfence.verification.edges import Edges
from kvfence.verification.engine import Engine
from kvfence.verification.homing import home_rule
from kvfence.verification.worker import Worker


def test_every_move_that_costs_nothing_is_kept_with_its_class():
    engine = Engine(SCOPES["leave"], CORRECT)
    worker = Worker(engine, frozenset(), keeps_edges=True)
    worker.begin()
    for _ in range(6):
        layer = dict(worker.frontier)
        at = len(worker.edges.share.targets)
        worker.accept(worker.decide(worker.expand(), 0))
        share = worker.edges.share
        sources = share.sources[-len(layer) :]
        assert list(sources) == list(layer)
        for source, count in zip(sources, share.counts[-len(layer) :], strict=True):
            state = layer[source]
            free = [
                (move, new)
                for move in engine.enabled(state)
                if is_free(engine, state, move)
                for new in [engine.after(state, move)[0]]
            ]
            assert count == len(free) <= len(engine.enabled(state))
            kept = zip(share.targets[at : at + count], share.classes[at : at + count], strict=True)
            for (move, new), (key, kind) in zip(free, kept, strict=True):
                assert key == engine.key_of(new)
                assert share.names[kind][0] == type(move.happening).__name__
            at += count
    assert len(share.keys) == len(share.homes) == len(worker.parents)
    assert share.homes[0], "where nobody has asked for anything, everybody is home"
    assert share.bytes > 8 * len(share.keys)


def is_free(engine, state, move):
    return engine.after(state, move)[0][-1] is state[-1]


def test_a_share_begins_where_the_work_was_divided():
    engine = Engine(SCOPES["leave"], CORRECT)
    edges, start = Edges(home_rule(engine)), engine.start()
    for key in (7, 8, 9):
        edges.file(key, start)
    edges.leave(0)
    edges.add(8, next(iter(engine.enabled(start))))
    before = edges.share
    edges.divide()
    assert edges.share.first == 3
    assert edges.share.names == before.names, "numbers of classes stay"
    assert not (edges.share.keys or edges.share.targets or edges.share.sources)
