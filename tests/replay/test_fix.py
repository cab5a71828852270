"""Act 4: what makes it hold, and the order of an abort whose writer stands still."""

import signal
from dataclasses import replace

import numpy as np
import pytest

from kvfence.kv import SEAL_DTYPE, SealKind
from kvfence.protocol.errors import InternalError
from kvfence.replay import fix as module
from kvfence.replay import trial
from kvfence.replay.client import Metrics
from kvfence.replay.fix import show_abort, show_fix
from tests.replay.fakes import FakeDeployment
from tests.replay.samples import ABORT, CONTROL_TRIAL, FIX, LEAKING_TRIAL, PLAY, page_map


def with_moment(index, **changes):
    moments = list(ABORT.moments)
    moments[index] = replace(moments[index], **changes)
    return replace(ABORT, moments=tuple(moments))


def test_an_abort_holds_when_pages_waited_for_the_writer():
    assert (ABORT.landed_late, ABORT.late_max) == (2, 4)
    assert ABORT.holds
    assert FIX.holds


@pytest.mark.parametrize(
    "broken",
    [
        with_moment(1, quarantined=10),
        with_moment(2, quarantined=0),  # time freed them
        with_moment(3, quarantined=80),  # they never came home
        with_moment(3, written=15),  # more landed than may be in flight
        with_moment(3, written=79),  # the abort stopped nothing
        replace(ABORT, served_after=False),
    ],
)
def test_an_abort_that_shows_something_else_does_not_hold(broken):
    assert not broken.holds
    assert not replace(FIX, abort=broken).holds


def test_the_prompt_must_be_refused_for_its_length():
    assert not replace(FIX, answer=replace(FIX.answer, status=503)).is_refused
    assert not replace(FIX, answer=replace(FIX.answer, code="busy")).is_refused


@pytest.mark.parametrize(
    "broken",
    [
        replace(CONTROL_TRIAL, words=("quokka",)),
        replace(CONTROL_TRIAL, page_map=None),
        replace(CONTROL_TRIAL, page_map=page_map(11)),
        replace(CONTROL_TRIAL, answer=replace(CONTROL_TRIAL.answer, code="integrity")),
    ],
)
def test_the_control_must_be_clean(broken):
    assert FIX.is_clean
    assert not replace(FIX, control=broken).is_clean
    assert not replace(FIX, control=broken).holds


class Watched(FakeDeployment):
    """A deployment whose decode node has put a lease into quarantine as soon as its client left."""

    def __init__(self):
        super().__init__()
        self.signals = []
        self.stuck = False

    def signal(self, node, number):
        self.signals.append((node, number))

    @property
    def is_stopped(self):
        return bool(self.signals) and self.signals[-1][1] is signal.SIGSTOP

    def metrics(self):
        gone = "tenant-a leaves" in self.asked
        quarantined = 20.0 if gone and self.is_stopped and not self.stuck else 0.0
        labels = {"node": "decode-0", "state": "quarantined"}
        return Metrics((("kvfence_pool_pages", labels, quarantined),))

    def wait_refused(self):
        return "kvfence: error"


class Pages:
    """Ten pages of a new lease, sealed one at a look."""

    def __init__(self):
        self.looks = 0

    def __call__(self):
        trailers = np.zeros(12, SEAL_DTYPE)
        self.looks += 1
        done = min(9, self.looks)
        if self.looks > 1:
            trailers["kind"][:done] = SealKind.SEALED
            trailers["sequence"][:done] = 1
        return trailers


@pytest.fixture
def deployment(monkeypatch):
    made = Watched()
    made.view.trailers = Pages()

    def wait_until(accept, seconds):
        return any(accept() for _ in range(30))

    made.wait_until = wait_until
    monkeypatch.setattr(trial.PoolView, "of_deployment", lambda run_dir: made.view)
    monkeypatch.setattr(module, "STANDSTILL_SECONDS", 0.0)
    monkeypatch.setattr(module.time, "monotonic", iter(range(1000)).__next__)
    return made


def test_the_writer_is_stopped_the_client_leaves_and_the_writer_goes_on(deployment):
    prompts = PLAY.prompts(deployment.count_tokens)
    said = []
    abort = show_abort(deployment, prompts, said.append)
    assert deployment.signals == [("prefill-0", signal.SIGSTOP), ("prefill-0", signal.SIGCONT)]
    assert [moment.quarantined for moment in abort.moments] == [0, 20, 20, 0]
    assert abort.moments[0].written >= module.WRITTEN_PAGES_FIRST
    assert len(said) == 4


def test_the_writer_goes_on_even_when_nothing_happens(deployment):
    deployment.stuck = True
    with pytest.raises(InternalError, match="it did not happen that decode puts the pages into quarantine"):
        show_abort(deployment, PLAY.prompts(deployment.count_tokens), lambda words: None)
    assert deployment.signals[-1] == ("prefill-0", signal.SIGCONT)


def test_the_whole_act(deployment, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "run_trial", lambda *given, ask: asked.append(ask.prompt) or LEAKING_TRIAL)
    made = show_fix(deployment, deployment, PLAY, lambda words: None)
    assert made.refused_start == "kvfence: error"
    assert made.command == "kvfence serve"
    assert not made.is_refused, "the fake answers B"
    assert not made.is_clean, "with A's words"
    assert asked == [PLAY.prompts(deployment.count_tokens).b_shorter.prompt]
