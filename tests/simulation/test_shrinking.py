"""Shrinking asks a bounded number of times, and drops whole requests first."""

from kvfence.protocol import CORRECT
from kvfence.protocol.words import Peer
from kvfence.simulation.shrinking import REPLAYS_MAX, shrink
from kvfence.simulation.swarm import draw_swarm
from kvfence.world import Kind
from kvfence.world import happenings as h

ROUTER = Peer("router0", 1)
SCRIPT = tuple((time, h.Submit(ROUTER, time)) for time in range(1, 41))


def with_replays(monkeypatch, needed):
    asked = []

    def replay(_swarm, _decisions, script, _kind):
        asked.append(len(script))
        return tuple(script) if needed(script) else None

    monkeypatch.setattr("kvfence.simulation.shrinking.replay", replay)
    return shrink(draw_swarm(0), CORRECT, SCRIPT, Kind.LAW), asked


def test_only_what_the_finding_needs_is_left(monkeypatch):
    wanted = {SCRIPT[3], SCRIPT[30]}
    short, _ = with_replays(monkeypatch, lambda script: wanted <= set(script))
    assert set(short) == wanted


def test_the_number_of_replays_is_bounded(monkeypatch):
    short, asked = with_replays(monkeypatch, lambda script: len(script) >= 40)
    assert short == SCRIPT
    assert len(asked) < REPLAYS_MAX
    monkeypatch.setattr("kvfence.simulation.shrinking.REPLAYS_MAX", 5)
    _, asked = with_replays(monkeypatch, lambda script: bool(script))
    assert len(asked) < 5
