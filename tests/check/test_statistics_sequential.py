"""Looking for ever: how often it alarms when nothing is wrong, and how soon when something is."""

import random
from statistics import mean

import pytest

from kvfence.check.statistics_sequential import Evidence, e_of_count, e_of_p
from kvfence.protocol.errors import InvariantError

HOURS_OF_A_MONTH = 720
ALPHA = 0.01


def ever_alarms(e_values, alpha=ALPHA):
    """The look at which it alarms, or None."""
    evidence = Evidence(alpha=alpha)
    for e_value in e_values:
        evidence = evidence.after(e_value)
        if evidence.is_alarm:
            return evidence.looks
    return None


def test_an_hourly_test_at_one_per_cent_alarms_almost_surely():
    """What this file is for: the plain way fails."""
    source = random.Random(1)
    months = [any(source.random() <= ALPHA for _ in range(HOURS_OF_A_MONTH)) for _ in range(200)]
    assert mean(months) > 0.98


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_false_alarms_in_a_month_of_p_values(alpha):
    source = random.Random(2)
    months = 300
    alarms = sum(
        ever_alarms((e_of_p(1 - source.random()) for _ in range(HOURS_OF_A_MONTH)), alpha) is not None
        for _ in range(months)
    )
    assert alarms / months <= alpha + 0.01


def test_false_alarms_in_a_month_of_counts():
    source = random.Random(3)
    months, alarms = 200, 0
    for _ in range(months):
        counts = (sum(source.random() < 0.05 for _ in range(6)) for _ in range(HOURS_OF_A_MONTH))
        e_values = (e_of_count(hits, 6, rate=0.05, rate_if_broken=0.3) for hits in counts)
        alarms += ever_alarms(e_values, 0.1) is not None
    assert 0 < alarms / months <= 0.1


def test_the_mean_of_the_evidence_stays_one():
    source = random.Random(4)
    ends = []
    for _ in range(4_000):
        evidence = Evidence(alpha=ALPHA)
        for _ in range(5):
            hits = int(source.random() < 0.3)
            evidence = evidence.after(e_of_count(hits, 1, rate=0.3, rate_if_broken=0.5))
        ends.append(evidence.value)
    assert mean(ends) == pytest.approx(1, abs=0.05)


def test_what_begins_after_a_healthy_month_is_found_within_a_day():
    healthy = [e_of_count(0, 6, rate=0.05, rate_if_broken=0.3)] * HOURS_OF_A_MONTH
    broken = [e_of_count(2, 6, rate=0.05, rate_if_broken=0.3)] * 24
    assert ever_alarms(healthy) is None
    assert HOURS_OF_A_MONTH < ever_alarms(healthy + broken) <= HOURS_OF_A_MONTH + 24


def test_it_goes_on_from_where_it_was():
    one = Evidence(alpha=ALPHA).after(3.0)
    again = Evidence(alpha=one.alpha, looks=one.looks, begun=one.begun)
    assert again.after(2.0) == one.after(2.0)


def test_it_stays_finite():
    evidence = Evidence(alpha=ALPHA)
    for _ in range(10):
        evidence = evidence.after(e_of_count(1_000, 1_000, rate=0.01, rate_if_broken=0.9))
    assert evidence.is_alarm
    assert evidence.value < float("inf")


def test_what_is_no_p_value_or_rate_is_a_mistake():
    with pytest.raises(InvariantError):
        e_of_p(0)
    with pytest.raises(InvariantError):
        e_of_count(0, 1, rate=0.3, rate_if_broken=0.1)
