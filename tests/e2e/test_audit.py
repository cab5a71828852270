"""A real deployment is audited: by its address, and by what it saved."""

import json

import pytest
from typer.testing import CliRunner

from kvfence.cli.app import app

pytestmark = pytest.mark.e2e

CONTEXT, POOL = 1024, 1536


@pytest.fixture(scope="module")
def deployment(launch):
    return launch("--context", str(CONTEXT), "--pool-tokens", str(POOL)).wait_ready()


def audit(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)], env={"COLUMNS": "140", "TERM": "dumb"})


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_its_nodes_and_their_pair_are_read_and_found_fit(deployment, tmp_path):
    told = tmp_path / "events.jsonl"
    result = audit(deployment.url, "--jsonl", told)
    assert result.exit_code == 0, result.output
    nodes = {event["role"]: event for event in events(told) if event["event"] == "node_read"}
    assert {role: node["verdict"] for role, node in nodes.items()} == {
        "router": "no pool",
        "prefill": "ok",
        "decode": "ok",
    }
    for role in ("prefill", "decode"):
        assert nodes[role]["figures"]["pool_tokens"]["value"] == POOL
        assert nodes[role]["figures"]["context_tokens"]["value"] == CONTEXT
    (pair,) = [event for event in events(told) if event["event"] == "pair_read"]
    assert (pair["prefill"], pair["decode"], pair["limit_tokens"]) == (
        nodes["prefill"]["node"],
        nodes["decode"]["node"],
        CONTEXT,
    )


def test_what_it_answered_once_says_the_same_from_a_file(deployment, tmp_path):
    info, metrics = tmp_path / "server_info.json", tmp_path / "metrics.txt"
    info.write_text(deployment.get("/server_info"))
    metrics.write_text(deployment.get("/metrics"))
    result = audit(info)
    assert result.exit_code == 0, result.output
    assert f"limit {CONTEXT:,} tokens" in result.output
    unknown = audit(metrics)
    assert unknown.exit_code == 1, "metrics alone do not say the context"
    assert f"{POOL:,}" in unknown.output and "context could not be read" in unknown.output


def test_a_pool_that_was_made_small_by_hand_is_found(deployment, tmp_path):
    """The same answer, with the incident's proportions."""
    info = deployment.server_info()
    for node in info["nodes"]:
        if node["role"] == "prefill":
            node["pool_tokens"] = 665
            node["largest_request_tokens"] = CONTEXT
    path = tmp_path / "server_info.json"
    path.write_text(json.dumps(info))
    result = audit(path)
    assert result.exit_code == 1
    first = result.output.splitlines()[0]
    assert first.startswith("CRITICAL KVF101") and "665" in first and "1,024" in first
