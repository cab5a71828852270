"""A run's events sorted: findings worst first, scenarios in order, and a first line that claims no more than was seen."""

import pytest

from kvfence.protocol.errors import InvariantError
from kvfence.report import FindingMade, RunEnded
from kvfence.report.digest import Digest
from tests.report.samples import (
    AUDIT,
    INCIDENT,
    INCONCLUSIVE,
    INTERRUPTED,
    LEAKING,
    NOT_TESTED,
    QUIET,
    reuse,
    started,
    unread,
)

END = RunEnded(at_s=9.0, exit_code=5, why="nothing was tested")


def test_findings_stand_worst_first_and_know_their_lines():
    digest = Digest.of(AUDIT)
    assert [made.finding.code for made in digest.findings] == ["KVF101", "KVF104", "KVF114"]
    assert [made.finding.code for made in digest.open_findings] == ["KVF101", "KVF104"]
    line = digest.line_of[INCIDENT.fingerprint]
    assert AUDIT[line - 1].finding == INCIDENT


def test_scenarios_have_their_answers_and_findings():
    one_word, boundary, cross, stale = Digest.of(LEAKING).scenarios
    assert [len(story.answers) for story in (one_word, boundary, cross, stale)] == [1, 4, 6, 0]
    assert [made.finding.code for made in boundary.findings] == ["KVF203"]
    assert stale.started is None
    assert stale.ended.why == "needs a server of one's own"


def test_a_run_without_its_end_is_interrupted():
    digest = Digest.of(INTERRUPTED)
    assert digest.ended is None
    assert digest.headline == "interrupted after 2 s: no evidence in 12 opportunities"


def test_the_first_line_of_an_audit_has_both_numbers():
    assert Digest.of(AUDIT).headline == (
        "CRITICAL KVF101 prefill-1: the pool holds 681,280 tokens and the context is 1,048,576: 64.97 % of it"
    )


def test_the_first_line_of_a_quiet_run_says_in_how_many_opportunities():
    assert Digest.of(QUIET).headline == "no evidence in 12 opportunities"


def test_accepted_findings_are_told_beside():
    made = FindingMade(finding=reuse(), accepted="known")
    assert Digest.of((*QUIET, made)).headline == "no evidence in 12 opportunities; 1 accepted by the baseline"
    audit = (started("audit"), *AUDIT[1:4], RunEnded(exit_code=0, why="no finding"))
    assert Digest.of(audit).headline == "no finding on 3 nodes"


@pytest.mark.parametrize("scenario", [NOT_TESTED, INCONCLUSIVE])
def test_where_nothing_was_tested_the_first_line_says_so(scenario):
    assert Digest.of((started(), scenario, END)).headline == "too little was tested: nothing was tested"


def test_words_of_a_server_are_made_plain_in_the_first_line():
    made = FindingMade(finding=unread(what="it said \x1b[2J", about="a\nb"))
    assert Digest.of((started(), made)).headline == "CRITICAL KVF203 a b: it said \ufffd[2J"


def test_events_without_a_start_are_our_own_fault():
    with pytest.raises(InvariantError, match="begin with its start"):
        Digest.of(LEAKING[1:])


def test_a_run_that_got_nowhere_tested_nothing():
    ended = RunEnded(at_s=1.0, exit_code=4, why="nobody answers")
    assert Digest.of([started("check"), ended]).headline == "nothing was tested: nobody answers"
