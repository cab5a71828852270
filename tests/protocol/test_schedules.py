"""Random schedules over the joined rig: any order, any loss, any death; then everything comes home.

A safety phase takes what hypothesis chooses from all that can happen: deliver, lose, compute, land, fail,
suspect, cut, crash, leave, expire. Laws and content are checked at each step by the rig. A liveness phase
follows in which nothing more goes wrong and timers fire in order of time: every request ends and every
page comes home.
"""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.protocol.rig import Joined
from tests.protocol.test_prefill import Shelf

from kvfence.protocol import Decisions, Reach, events
from kvfence.protocol.words import Role

STEPS_MAX = 120
SIZES = ((3, 2), (8, 5), (13, 30), (4, 40), (30, 9))  # prompt, max_tokens
TIMERS_MAX = 400
CANARY_RUNS_MAX = 300


def network_faults(rig):
    """A control network that repeats and reorders: more than ours does. Illegal events are then legal."""
    links = [link for link, queue in sorted(rig.links.items()) if queue and link[0] != link[1]]
    actions = [("repeat", link) for link in links]
    return actions + [("swap", link) for link in links if len(rig.links[link]) > 1]


def rare_actions(rig):
    """What goes wrong, and what clients do."""
    actions = [("submit", size) for size in SIZES] if rig.submitted < 6 else []
    actions += [("leave", n) for n in rig.prompts if n not in rig.finished]
    actions += [("timer", (name, i)) for name, seat in rig.seats.items() for i in range(len(seat.timers))]
    actions += [("fail", i) for i, write in enumerate(rig.writes) if not write.is_loose]
    actions += [("late", i) for i, write in enumerate(rig.writes) if write.is_loose]
    actions += [("launch", name) for name, seat in rig.seats.items() if rig._can_step(seat)]
    actions += [("retire", name) for name, seat in rig.seats.items() if seat.in_flight]
    actions += [("lose", link) for link, queue in sorted(rig.links.items()) if queue and link[0] != link[1]]
    actions += [("crash", name) for name in rig.seats]
    actions += [("drop", i) for i, write in enumerate(rig.writes) if not write.is_loose]
    actions += [("reconnect", (p, d)) for p in rig.seats for d in rig.seats if p[0] == "p" and d[0] == "d"]
    actions += [("suspect", (d, p)) for d in rig.seats for p in rig.seats if d[0] == "d" and p[0] == "p"]
    return actions


def act(rig, action):
    """Do one of them."""
    kind, key = action
    if kind == "submit":
        rig.submit(*key)
    elif kind == "leave" and key not in rig.lost_with_router:
        rig.leave(key)
    elif kind == "timer":
        rig.fire_timer(key[0], rig.seats[key[0]].timers[key[1]])
    elif kind == "fail":
        rig.fail(rig.writes[key])
    elif kind == "late":
        rig.land(rig.writes[key])
    elif kind == "launch" and len(rig.seats[key].in_flight) < 3:
        rig.launch(key)
    elif kind == "retire":
        rig.retire(key)
    elif kind == "lose":
        rig.links[key].popleft()
    elif kind == "crash":
        rig.crash(key)
    elif kind == "drop":
        rig.drop(rig.writes[key])
    elif kind == "reconnect":
        rig.reconnect(*key)
    elif kind == "repeat":
        rig.links[key].appendleft(rig.links[key][0])
    elif kind == "swap":
        queue = rig.links[key]
        queue[0], queue[1] = queue[1], queue[0]
    elif kind == "suspect":
        rig.feed(key[0], events.PeerLost(rig.peer(key[1])))


def restart_condemned(rig):
    """A writer that was cut comes back only as a new incarnation: its launcher restarts it."""
    for name, seat in list(rig.seats.items()):
        others = [s.core for s in rig.seats.values() if s.role is Role.DECODE]
        if seat.role is Role.PREFILL and not all(
            core.writers.get(seat.peer) is Reach.WRITING for core in others
        ):
            rig.crash(name)


def come_home(rig):
    """Let everything that is pending happen, and time pass, until all is home."""
    for _ in range(TIMERS_MAX):
        for name, seat in rig.seats.items():
            while seat.in_flight:
                rig.retire(name)
        rig.run()
        restart_condemned(rig)
        rig.greet_all()
        rig.run()
        if all(rig.is_home(name) for name in rig.seats):
            break
        timers = [(t.after_ms, name, i) for name, s in rig.seats.items() for i, t in enumerate(s.timers)]
        if timers:
            _, name, i = min(timers)
            rig.fire_timer(name, rig.seats[name].timers[i])
    rig.assert_home()


def assert_nothing_illegal(rig):
    """While control messages keep their order, nobody ever says what has no row."""
    for seat in rig.seats.values():
        assert "illegal" not in seat.core.counts, rig.story(200)


def play(rig, choices, *, more=lambda _rig: []):
    """The safety phase: mostly what is pending, sometimes something rare."""
    for choice in choices:
        usual, rare = rig.pending(), rare_actions(rig) + more(rig)
        if choice % 3 and usual:
            rig.do(usual[choice // 3 % len(usual)])
        elif rare:
            act(rig, rare[choice // 3 % len(rare)])


CHOICES = st.lists(st.integers(0, 3_000), min_size=20, max_size=STEPS_MAX)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@QUICK
@given(choices=CHOICES)
def test_one_prefill_one_decode(choices):
    rig = Joined(prefill_pages=12, decode_pages=12)
    play(rig, choices)
    come_home(rig)
    assert_nothing_illegal(rig)


@QUICK
@given(choices=CHOICES)
def test_two_and_two_with_tiny_pools(choices):
    rig = Joined(prefill_pages=12, decode_pages=12, spare=1, prefills=2, decodes=2, batch_pages=1)
    play(rig, choices)
    come_home(rig)
    assert_nothing_illegal(rig)


@QUICK
@given(choices=CHOICES)
def test_a_network_that_repeats_and_reorders(choices):
    rig = Joined(prefill_pages=12, decode_pages=12)
    play(rig, choices, more=network_faults)
    come_home(rig)


@QUICK
@given(choices=CHOICES)
def test_with_a_prefix_cache(choices):
    rig = Joined(prefill_pages=12, decode_pages=12, prefix=Shelf, same_prompts=True)
    play(rig, choices)
    come_home(rig)
    assert_nothing_illegal(rig)


class FreesOnDeadline(Decisions):
    """The canary: pages become free when the writer's deadline passes."""

    def deadline_is_quiet(self):
        return True

    def abort_is_quiet(self):
        return True

    def lost_is_quiet(self):
        return True


def test_the_rig_is_alive():
    """A core that frees on time, abort or loss is found out by the same schedules, and soon."""
    dice = random.Random(1)
    with pytest.raises(AssertionError, match=r"law 4|another lease"):
        for _ in range(CANARY_RUNS_MAX):
            rig = Joined(prefill_pages=12, decode_pages=12, decisions=FreesOnDeadline())
            play(rig, [dice.randrange(3_001) for _ in range(STEPS_MAX)])
            come_home(rig)
