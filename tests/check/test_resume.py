"""Going on with an interrupted run."""

import dataclasses

import pytest
from tests.check.to_fake import fake_target

from kvfence.check.resume import check_same_profile, check_same_target, resumed_from
from kvfence.check.target import Address
from kvfence.protocol.errors import OperatorError
from kvfence.report import Answered, Cost, RunEnded, RunStarted, ScenarioEnded, Verdict

STARTED = RunStarted(
    tool="check",
    version="0",
    run="r1",
    started="2026-01-01T00:00:00Z",
    targets=("t",),
    seed=7,
    profile="quick",
)
ANSWERED = Answered(
    at_s=2.0,
    scenario="one",
    request=1,
    tenant="a",
    mark="probe",
    expected_prompt_tokens=10,
    prompt_tokens=12,
    completion_tokens=3,
)


def ended(name: str, verdict: Verdict) -> ScenarioEnded:
    return ScenarioEnded(at_s=3.0, scenario=name, verdict=verdict, why="")


def test_it_goes_on_behind_what_has_a_verdict():
    events = (
        STARTED,
        ANSWERED,
        ended("one", Verdict.NO_EVIDENCE),
        ended("two", Verdict.NOT_TESTED),
        Answered(at_s=5.0, scenario="three", request=2, tenant="a", mark="probe"),
    )
    resumed = resumed_from(events)
    assert resumed.done == {"one"}
    assert resumed.used == Cost(requests=2, prompt_tokens=12, completion_tokens=3)
    assert (resumed.requests, resumed.at_s, resumed.started.seed) == (2, 5.0, 7)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((), "does not begin"),
        ((ANSWERED,), "does not begin"),
        ((RunStarted(tool="audit", version="0", run="r", started="", targets=()),), "kvfence audit"),
        ((RunStarted(tool="check", version="0", run="r", started="", targets=()),), "no seed"),
        ((STARTED, RunEnded(exit_code=0, why="")), "came to its end"),
    ],
)
def test_what_cannot_be_gone_on_with_says_why(events: tuple, words: str):
    with pytest.raises(OperatorError, match=words):
        resumed_from(events)


RESUMED = resumed_from((STARTED, ANSWERED))


def test_the_same_target_and_profile_go_on():
    target = dataclasses.replace(fake_target("a"), address=Address(base=STARTED.targets[0]))
    check_same_target(RESUMED, (target,))
    check_same_profile(RESUMED, STARTED.profile, "quick")
    check_same_profile(RESUMED, "quick", "quick")


def test_another_target_or_profile_is_refused():
    with pytest.raises(OperatorError, match=r"that run is about .*, not about http"):
        check_same_target(RESUMED, (fake_target("a"),))
    with pytest.raises(OperatorError, match="leave out --profile deep"):
        check_same_profile(RESUMED, "deep", "quick")
