"""What of a reply may be stored."""

import pytest

from kvfence.check.reply import FINISHES, Reply


def ended(*reasons):
    return Reply(status=200, failure=None, total_s=0.1, finish_reasons=reasons)


@pytest.mark.parametrize("reason", sorted(FINISHES))
def test_a_known_finish_reason_is_told(reason):
    assert ended(reason).told_finish == reason


def test_another_one_may_hold_somebodys_words_and_is_not():
    assert ended("Dear Mrs Example, your account 4711").told_finish == "other"
    assert ended().told_finish is None
