"""Findings: severities have an order, and a fingerprint stays while time and figures change."""

import pytest

from kvfence.report import Severity
from tests.report.samples import unread


def test_severities_go_from_the_worst_down():
    assert [severity.rank for severity in Severity] == list(range(5))
    assert Severity.CRITICAL.is_at_least(Severity.HIGH)
    assert Severity.HIGH.is_at_least(Severity.HIGH)
    assert not Severity.LOW.is_at_least(Severity.MEDIUM)


def test_a_fingerprint_does_not_change_with_what_was_measured():
    first, again = unread(), unread(what="other numbers", evidence={"ttft_s": 2.0}, severity=Severity.HIGH)
    assert first.fingerprint == again.fingerprint
    assert len(first.fingerprint) == 32


@pytest.mark.parametrize("other", [{"code": "KVF204"}, {"about": "another"}, {"subject_key": "other"}])
def test_a_fingerprint_changes_with_what_it_is_about(other):
    assert unread(**other).fingerprint != unread().fingerprint
