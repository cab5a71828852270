"""The fleet: one start for the same flags, nobody waits for the retired, and all are gone at its end."""

import pytest

from kvfence.protocol.errors import InvariantError
from kvfence.replay import fleet as module
from kvfence.replay.fleet import Fleet


class Ship:
    log = None

    def __init__(self, flags, environment):
        self.flags, self.environment = flags, environment
        self.log.append(("start", *flags))

    def wait_ready(self, say):
        self.log.append(("ready", *self.flags))
        return self

    def begin_stop(self):
        self.log.append(("told", *self.flags))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.log.append(("gone", *self.flags))


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(module, "Deployment", Ship)
    monkeypatch.setattr(Ship, "log", [])
    return Ship.log


def test_a_deployment_is_started_once_and_ahead(log):
    with Fleet({"A": "b"}) as fleet:
        ahead = fleet.start(("a",))
        assert fleet.ready(("a",), None) is ahead
        assert ahead.environment == {"A": "b"}
        assert log == [("start", "a"), ("ready", "a")]


def test_the_retired_are_told_and_waited_for_at_the_end(log):
    with Fleet({}) as fleet:
        fleet.ready(("a",), None)
        fleet.start(("b",))
        fleet.retire(("a",))
        assert log[-1] == ("told", "a")
        with pytest.raises(InvariantError):
            fleet.retire(("a",))
    assert log[-3:] == [("told", "b"), ("gone", "b"), ("gone", "a")]


def test_ctrl_c_takes_all_of_them_down(log):
    with pytest.raises(KeyboardInterrupt), Fleet({}) as fleet:
        fleet.start(("a",))
        raise KeyboardInterrupt
    assert log[-2:] == [("told", "a"), ("gone", "a")]
