"""Items of the agenda are told apart by what they are, and never compared by order."""

from kvfence.protocol.words import LeaseId, Peer, Timer, TimerKind
from kvfence.simulation.agenda import Agenda
from kvfence.simulation.items import Blow, Calm, Heal, Item, Ring, Tick
from kvfence.world import happenings as h

PEER = Peer("decode0", 1)


def test_items_of_every_kind_may_be_due_at_once():
    agenda: Agenda[Item] = Agenda()
    items = [Tick(), Calm(), Heal(frozenset()), Blow(h.Crash(PEER))]
    items.append(Ring(PEER, Timer(TimerKind.LEASE, LeaseId(1, 1)), 1))
    for item in items:
        agenda.add(0, item)
    assert [agenda.pop()[1] for _ in items] == items
