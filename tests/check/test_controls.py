"""A share of the positive and negative controls: faults are found, their healthy twins are not.

All of them, over many seeds, are played by `docs/make_check.py`.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.check.controls import HARD, play
from tests.check.fake.faults import EXPOSING, setup_for
from tests.check.fake.setup import Setup
from tests.check.fake.variants import BAND_1M, HEALTHY, HEALTHY_1M

from kvfence.check.budget import Limits
from kvfence.report import Verdict

ROOT = Path(__file__).parents[2]
# fault → the scenario that sees it, its verdict
SEEN = {
    "rejected-continues/placeholder": ("boundary", "unread"),
    "over-length/head-dropped": ("boundary", "truncated"),
    "over-length/hang": ("boundary", "hang"),
    "over-length/crash-without-limit": ("boundary", "hang"),
    "transfer-outlives-pages/writer-goes-on": ("abort-refill", "leak"),
    "step-outlives-pages/late-step": ("churn-steady", "suspect"),
    "false-completion/short-transfer": ("one-word", "leak"),
    "key-omits-identity/chain-dropped": ("identity-swap", "exposed"),
    "stale-reference/expired-handoff": ("stale-handoff", "leak"),
    "control-slot-reuse/first-token-slot": ("first-token", "leak"),
    "id-collision/client-ids": ("id-collision", "leak"),
    "key-collision/short-key": ("birthday", "leak"),
    "salt-dropped/one-domain": ("cross-tenant-reuse", "exposed"),
    "visible-before-written/published-early": ("burst-prefix", "leak"),
    "match-not-pinned/unpinned-match": ("full-pool", "leak"),
    "offload-mixup/wrong-entry": ("spill-return", "leak"),
    "unscrubbed-reuse/dirty-tail": ("a-x-a", "leak"),
    "padding-touches-live/page-zero": ("bucket-edges", "suspect"),
    "row-mixup/swapped-tokens": ("one-word", "leak"),
    "response-misroute/kept-rest": ("marker-sweep", "leak"),
}


# The others take seconds each.
QUICK = (
    "rejected-continues/placeholder",
    "over-length/head-dropped",
    "control-slot-reuse/first-token-slot",
    "false-completion/short-transfer",
    "key-omits-identity/chain-dropped",
    "id-collision/client-ids",
    "stale-reference/expired-handoff",
    "unscrubbed-reuse/dirty-tail",
    "padding-touches-live/page-zero",
    "row-mixup/swapped-tokens",
)


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in SEEN]
)
def test_a_fault_is_found_and_its_healthy_twin_is_not(fault):
    scenario, verdict = SEEN[fault]
    counts = HARD | {Verdict.EXPOSED} if fault in EXPOSING else HARD
    setup = setup_for(fault)
    played = play(setup, seed=3, only=(scenario,), counts=counts)
    assert (played.scenario, played.verdict) == (scenario, verdict)
    twin = play(replace(setup, faults=()), seed=3, only=(scenario,))
    assert twin.scenario is None


@pytest.mark.parametrize(("band", "verdict"), [(0, None), (4, "unread")])
def test_a_band_of_four_tokens_is_found_by_deep(band, verdict):
    tokens = 8_192
    setup = Setup(
        context_tokens=tokens,
        prefill_tokens=tokens - band,
        pool_tokens=12_288,
        faults=("rejected-continues/placeholder",),
    )
    assert play(setup, seed=3, profile="deep", only=("boundary",)).verdict == verdict


def test_the_incident_is_found_by_quick_within_half_a_minute():
    played = play(setup_for("rejected-continues/placeholder"), seed=4, profile="quick")
    assert played.verdict in {"leak", "unread"}
    assert played.seconds < 30


@pytest.mark.parametrize(
    "name", ["ample", "tiny-pool", "preempting", "no-prefix-cache", "disobedient-and-rounding"]
)
def test_a_healthy_server_gets_no_verdict(name):
    played = play(HEALTHY[name], seed=5, profile="quick")
    assert played.scenario is None
    assert played.requests > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "verdict"),
    [
        (HEALTHY_1M, None),
        (replace(BAND_1M, faults=("rejected-continues/placeholder",)), "unread"),
        (replace(BAND_1M, faults=("over-length/head-dropped",)), "truncated"),
        (replace(BAND_1M, faults=("over-length/hang",)), "hang"),
        (BAND_1M, "exposed"),  # it refuses what it advertises
    ],
)
def test_the_public_clock_of_a_million_tokens(setup, verdict):
    played = play(
        setup, seed=6, only=("boundary",), counts=HARD | {Verdict.EXPOSED}, limits=Limits(seconds=7_200)
    )
    assert played.verdict == verdict


def test_a_run_ends_with_its_first_finding():
    played = play(Setup(faults=("row-mixup/swapped-tokens",)), seed=7)
    assert list(played.ended.values()) == ["leak"]


def test_the_page_is_up_to_date():
    done = subprocess.run(
        [sys.executable, "docs/make_check.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
