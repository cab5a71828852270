"""`kvfence check` against real deployments: the incident is found by `quick`, healthy ones have no finding.

Long runs over the same deployments are `make soak-check`; how long things take is measured there, not here.
"""

import json

import pytest
from typer.testing import CliRunner

from kvfence.cli.app import app

pytestmark = pytest.mark.e2e

INCIDENT = (
    *("--context", "4096", "--pool-tokens", "2048", "--fence", "off"),
    *("--unsafe-fault", "rejected-continues/incident", "--i-understand-this-leaks-data"),
)
HEALTHY = {
    "one of each": ("--context", "2048", "--pool-tokens", "4096"),
    "two of each": ("--context", "2048", "--pool-tokens", "4096", "--prefill", "2", "--decode", "2"),
    "tiny pool": ("--context", "1024", "--pool-tokens", "1024"),
    "preempting": ("--context", "1024", "--prefill-pool-tokens", "4096", "--decode-pool-tokens", "1024"),
    "no prefix cache": ("--context", "2048", "--pool-tokens", "4096", "--no-prefix-cache"),
}
# How long it takes is no matter here: machines that run tests are busy.
PATIENT = ("--budget", "seconds=900")
HELD_UP = "the lifeline failed"
BAD = {"leak", "unread", "truncated", "hang"}


def check(deployment, told, *words):
    """Run the command; returns its result and the events of the run."""
    flags = ["check", deployment.url, "--seed", "7", "--jsonl", str(told), *words]
    result = CliRunner().invoke(app, flags, env={"COLUMNS": "140", "TERM": "dumb"})
    return result, [json.loads(line) for line in told.read_text().splitlines()]


def test_the_incident_is_found_by_quick(launch, tmp_path):
    deployment = launch(*INCIDENT).wait_ready()
    try:
        result, events = check(deployment, tmp_path / "run.jsonl", "--profile", "quick", *PATIENT)
    finally:
        deployment.stop()
    assert result.exit_code == 1, result.output
    found = [event for event in events if event["event"] == "finding_made"]
    assert {event["finding"]["code"] for event in found} & {"KVF201", "KVF203"}
    assert {event["finding"]["severity"] for event in found} >= {"critical"}
    print(f"found {found[0]['finding']['code']} after {found[0]['at_s']:.1f} s")


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_deployment_has_no_finding(launch, tmp_path, name):
    deployment = launch(*HEALTHY[name]).wait_ready()
    short = ("--only", "one-word", "--only", "boundary", *PATIENT)
    try:
        result, events = check(deployment, tmp_path / "run.jsonl", *short)
    finally:
        deployment.stop()
    assert result.exit_code in {0, 5}, result.output
    assert not [event for event in events if event["event"] == "finding_made"]
    ended = {event["scenario"]: event for event in events if event["event"] == "scenario_ended"}
    verdicts = {scenario: event["verdict"] for scenario, event in ended.items()}
    assert not BAD & set(verdicts.values()), verdicts
    # A machine that is busy with something else may hold small requests up, and nothing else is an excuse.
    boundary = ended["boundary"]
    assert boundary["verdict"] == "no evidence" or HELD_UP in boundary["why"], boundary["why"]
    print(f"{name}: {verdicts}, {events[-1]['at_s']:.1f} s")
