"""How cores are told something: in order, and a broken invariant is a finding."""

from tests.world.play import DECODE, PREFILL, ROUTER, ask, follow, submit_all, world_of

from kvfence.protocol import events
from kvfence.protocol.words import Role, Timer, TimerKind
from kvfence.world import Kind, happenings


def test_what_a_core_is_told_while_it_speaks_comes_after_what_it_said():
    world = submit_all(world_of(ask(1)))
    heard = []

    class Listening:
        def step(self, core, event):
            heard.append(type(event).__name__)
            return core, core.step(event)

    world.stepper = Listening()
    while world.clients[1].end is None:
        world.perform(next(one for one in world.enabled() if not isinstance(one, happenings.Fire)))
    assert heard.index("TailCopied") == heard.index("SealsVerified") + 1


def test_a_message_to_nobody_is_lost():
    world = world_of(ask(1))
    world.perform(happenings.Crash(DECODE))
    world.send(ROUTER, DECODE, events.Hello(ROUTER, Role.ROUTER))
    assert not world.wires


def test_a_core_that_is_misused_is_a_finding_and_the_world_goes_on():
    world = world_of(ask(1))
    for _ in range(2):
        world.tell(PREFILL, events.StepLaunched(7, ()))
    assert [finding.kind for finding in world.findings] == [Kind.LAW]
    world.tell(PREFILL, events.StepRetired(7))
    assert not world.cores[PREFILL].steps


def ringing_late(world):
    """The old timers of a node, each of which could still ring."""
    return [timer for peer, timer in world.timers if world.old_generation(peer, timer) is not None]


def test_a_timer_that_was_taken_back_rings_late_and_changes_nothing():
    world = submit_all(world_of(ask(1)))
    assert ringing_late(world) == []
    world.perform(happenings.Deliver(ROUTER, DECODE))
    world.perform(happenings.Leave(1))
    follow(world, happenings.Deliver)
    late = ringing_late(world)
    assert {timer.kind for timer in late} >= {TimerKind.QUEUE, TimerKind.LEASE}
    for peer, timer in [entry for entry in world.timers if entry[1] in late]:
        world.perform(happenings.RingLate(peer, timer))
        assert world.cores[peer].counts["stale_timer"]
    assert world.findings == []


def test_a_core_that_heeds_it_is_a_finding():
    class Hasty:
        """The stepper of a core that does not look at generations."""

        def step(self, core, event):
            if isinstance(event, events.Expired) and event.timer.key in core.leases:
                present = core.leases[event.timer.key].timers[event.timer.kind]
                event = events.Expired(event.timer, present)
            return core, core.step(event)

    world = submit_all(world_of(ask(1)))
    world.stepper = Hasty()
    world.perform(happenings.Deliver(ROUTER, DECODE))
    (lease,) = world.cores[DECODE].leases
    follow(
        world, happenings.Deliver, happenings.Launch, happenings.Retire, happenings.Land, happenings.Complete
    )
    world.perform(happenings.RingLate(DECODE, Timer(TimerKind.LEASE, lease)))
    assert [finding.kind for finding in world.findings] == [Kind.STALE_TIMER]


def test_hellos_say_what_a_pool_holds():
    world = world_of(ask(1))
    hello = world.hello_of(DECODE, world.cores[DECODE])
    assert hello.pool_tokens == 16 and hello.role is Role.DECODE
    assert world.hello_of(ROUTER, world.cores[ROUTER]).pool_tokens is None
