"""The driver keeps the order of events and the time of timers."""

import pytest

from kvfence.protocol.commands import PagesFreed, SetTimer
from kvfence.protocol.events import DrainRequested, Expired
from kvfence.protocol.words import Timer, TimerKind
from kvfence.serving.driver import CoreDriver

TIMER = Timer(TimerKind.REQUEST, 1)


class Script:
    """A core that answers by a table and keeps what it saw."""

    def __init__(self, answers):
        self.answers, self.seen = answers, []

    def step(self, event):
        self.seen.append(event)
        return self.answers.get(event, [])


def test_events_fed_by_a_command_wait_until_the_commands_before_them_are_done():
    done = []
    core = Script({"first": [PagesFreed((1,)), PagesFreed((2,))]})
    driver = CoreDriver(core, lambda command: (done.append(command), driver.feed(command.pages)))
    driver.feed("first")
    assert done == [PagesFreed((1,)), PagesFreed((2,))]
    assert core.seen == ["first", (1,), (2,)]


def test_timers_fire_in_the_order_of_their_time():
    now = [100.0]
    core = Script({"set": [SetTimer(TIMER, 1, 500), SetTimer(TIMER, 2, 200)]})
    driver = CoreDriver(core, lambda command: None, clock=lambda: now[0])
    assert driver.next_due_seconds() is None
    driver.feed("set")
    assert driver.next_due_seconds() == pytest.approx(0.2)
    now[0] = 100.3
    driver.fire_due()
    assert core.seen == ["set", Expired(TIMER, 2)]
    now[0] = 101.0
    assert driver.next_due_seconds() == 0.0
    driver.fire_due()
    assert core.seen[-1] == Expired(TIMER, 1)
    assert driver.next_due_seconds() is None


def test_a_failing_command_is_not_swallowed_and_the_driver_is_not_stuck():
    def fail(command):
        raise RuntimeError("broken")

    core = Script({"first": [DrainRequested()]})
    driver = CoreDriver(core, fail)
    with pytest.raises(RuntimeError):
        driver.feed("first")
    driver.feed("second")
    assert core.seen == ["first", "second"]


def test_an_observer_is_told_of_each_step_before_its_commands_are_carried_out():
    told = []
    core = Script({"first": [PagesFreed((1,))]})
    driver = CoreDriver(core, told.append)
    driver.observer = lambda event, said: told.append((event, tuple(said)))
    driver.feed("first")
    driver.feed("second")
    assert told == [("first", (PagesFreed((1,)),)), PagesFreed((1,)), ("second", ())]
