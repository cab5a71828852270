"""Root causes of a run: who looked, who did not, and the limit of each."""

from kvfence.report import ScenarioEnded, Verdict
from kvfence.report.digest import Digest
from kvfence.report.html import html_report
from kvfence.report.root_causes import LIMITS, looked_for
from tests.report.samples import AUDIT, QUIET, started


def ended(name, verdict, *classes):
    return ScenarioEnded(scenario=name, verdict=verdict, why="so", classes=classes)


def looked(*events):
    return {one.root: one for one in looked_for(Digest.of((started(), *events)))}


def test_every_class_is_there_with_its_limit():
    found = looked()
    assert list(found) == list(LIMITS)
    assert len(found) == 18
    assert all(not one.verdicts and one.limit == LIMITS[root] for root, one in found.items())


def test_those_who_looked_stand_in_their_order_with_what_came_of_it():
    found = looked(
        ended("one", Verdict.NO_EVIDENCE, "row-mixup"),
        ended("two", Verdict.LEAK, "row-mixup", "key-collision"),
    )
    assert found["row-mixup"].verdicts == (("one", Verdict.NO_EVIDENCE), ("two", Verdict.LEAK))
    assert found["key-collision"].verdicts == (("two", Verdict.LEAK),)
    assert found["id-collision"].verdicts == ()


def test_what_was_not_tested_did_not_look_and_what_saw_too_little_did():
    found = looked(
        ended("one", Verdict.NOT_TESTED, "row-mixup"), ended("two", Verdict.INCONCLUSIVE, "row-mixup")
    )
    assert found["row-mixup"].verdicts == (("two", Verdict.INCONCLUSIVE),)


def test_a_report_says_it_of_a_check_and_not_of_an_audit():
    assert LIMITS["response-misroute"] in html_report(QUIET)
    assert "Root causes" not in html_report(AUDIT)
