"""How cores are told something: in order, and a broken invariant is a finding."""

from tests.world.play import DECODE, PREFILL, ROUTER, ask, submit_all, world_of

from kvfence.protocol import events
from kvfence.protocol.words import Role
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


def test_hellos_say_what_a_pool_holds():
    world = world_of(ask(1))
    hello = world.hello_of(DECODE, world.cores[DECODE])
    assert hello.pool_tokens == 16 and hello.role is Role.DECODE
    assert world.hello_of(ROUTER, world.cores[ROUTER]).pool_tokens is None
