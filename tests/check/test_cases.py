"""The public cases, each played by a fake server, get the verdict that its report deserves.

The figures of a case are its reporter's; that a deployment of this kind is judged rightly is what is tested.
"""

import pytest
from tests.check.controls import play
from tests.check.fake.cases import CASES, EIGHTHS

# case → scenario, profile, verdict, code
RIGHT = {
    "CS-01": ("spill-return", "standard", "leak", "KVF201"),
    "CS-03": ("one-word", "quick", "leak", "KVF212"),
    "CS-05": ("bucket-edges", "standard", "suspect", "KVF206"),
    "CS-07": ("boundary", "deep", "truncated", "KVF204"),
    "CS-09": ("boundary", "quick", "truncated", "KVF204"),
    "CS-10": ("boundary", "quick", "hang", "KVF205"),
    "CS-12": ("boundary", "deep", "hang", "KVF205"),
    "CS-13": ("mixed-constraints", "standard", "leak", "KVF211"),
}


def judge(case, setup):
    scenario, profile, verdict, code = RIGHT[case]
    played = play(setup, seed=1, profile=profile, only=(scenario,))
    assert (played.scenario, played.verdict) == (scenario, verdict)
    assert code in played.codes


@pytest.mark.parametrize("case", CASES)
def test_a_public_case_gets_the_right_verdict(case):
    judge(case, EIGHTHS.get(case, CASES[case]))


@pytest.mark.slow
@pytest.mark.parametrize("case", EIGHTHS)
def test_the_longest_ones_do_so_in_their_full_size(case):
    judge(case, CASES[case])


def test_every_case_is_played():
    assert set(RIGHT) == set(CASES)
