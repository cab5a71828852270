"""Profiles: from two minutes to hours."""

import pytest

from kvfence.check.profiles import PROFILES, QUICK, profile_named
from kvfence.protocol.errors import OperatorError


def test_quick_is_two_minutes():
    assert QUICK.limits.seconds == 120.0
    assert QUICK.is_short


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_found_by_its_name(name: str):
    assert profile_named(name).name == name


def test_soak_goes_round_for_its_hours():
    soak = profile_named("soak", 8)
    assert (soak.hours, soak.limits.seconds, soak.limits.requests) == (8, 8 * 3_600.0, None)


@pytest.mark.parametrize(
    ("name", "hours", "words"),
    [
        ("quik", None, "did you mean quick"),
        ("soak", None, "--hours"),
        ("soak", 0, "--hours"),
        ("quick", 2, "belongs to the profile soak"),
        ("zzz", None, "there are quick"),
    ],
)
def test_a_wrong_profile_says_what_to_do(name: str, hours: float | None, words: str):
    with pytest.raises(OperatorError, match=words):
        profile_named(name, hours)
