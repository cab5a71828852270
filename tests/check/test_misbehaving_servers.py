"""Whatever a server, or what stands before it, does wrong: the run ends with the right code, and by itself."""

import pytest
from tests.check.controls import ending
from tests.check.fake.misbehaviour import MISBEHAVIOURS
from tests.check.fake.setup import Setup

from kvfence.report.exit_codes import ExitCode

RIGHT = {
    "slow": ExitCode.INCONCLUSIVE,
    "429": ExitCode.UNREACHABLE,
    "500": ExitCode.UNREACHABLE,
    "403": ExitCode.UNREACHABLE,
    "413": ExitCode.UNREACHABLE,
    "html": ExitCode.UNREACHABLE,
    "html-200": ExitCode.UNREACHABLE,
    "wrong-type": ExitCode.UNREACHABLE,
    "not-json": ExitCode.UNREACHABLE,
    "cut": ExitCode.INCONCLUSIVE,
    "error-event": ExitCode.FINDINGS,  # a success that is none
    "falling-back": ExitCode.INCONCLUSIVE,
    # What a client has to live with changes nothing.
    "no-done": ExitCode.CLEAN,
    "pings": ExitCode.CLEAN,
    "torn": ExitCode.CLEAN,
    "retrying-gateway": ExitCode.CLEAN,
}


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_a_misbehaving_server_ends_the_run_with_the_right_code(name):
    assert ending(Setup(misbehaviours=(name,)), seed=0) is RIGHT[name]


@pytest.mark.parametrize(
    "setup",
    [
        Setup(has_usage=False),
        Setup(takes_temperature=False, only_max_completion_tokens=True, has_logprobs=False),
        Setup(has_completions=False, has_tokenize=False, takes_token_ids=False, advertises=False),
    ],
)
def test_a_server_that_can_do_less_is_checked_all_the_same(setup):
    assert ending(setup, seed=0) in {ExitCode.CLEAN, ExitCode.INCONCLUSIVE}
