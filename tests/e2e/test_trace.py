"""A real run writes its trace: it conforms, holds no content, outlives a killed node, and costs a flag."""

import json

import pytest

from kvfence.verification import check_trace, render_trace

pytestmark = pytest.mark.e2e

CONTEXT, POOL = 1024, 2048
SECRET = "The vault of the harbour opens at nine with the word pelican."
KEY = "sk-of-tenant-a"


@pytest.fixture(scope="module")
def run(launch, tmp_path_factory):
    """What was written while answers, an abort, a refusal, a killed prefill node and a drain went by."""
    trace = tmp_path_factory.mktemp("t") / "run.jsonl"
    deployment = launch("--context", str(CONTEXT), "--pool-tokens", str(POOL), "--trace", str(trace))
    deployment.wait_ready()
    answer = deployment.complete(SECRET, 12, key=KEY)[1]["choices"][0]["text"]
    deployment.complete(SECRET + " Again.", 12, key=KEY)
    refused, _ = deployment.complete("no " * (CONTEXT + 10), 4)
    with deployment.stream("Count from one to five hundred:", 400) as stream:
        stream.next_event()
    deployment.kill("prefill-0")
    deployment.wait_output("prefill-0 is back")
    deployment.complete("After the fall", 6)
    deployment.assert_home()
    secret = (deployment.run_dir / "secret").read_bytes()
    code = deployment.interrupt()
    return {
        "trace": trace,
        "answer": answer,
        "refused": refused,
        "secret": secret,
        "code": code,
        "output": deployment.output,
    }


def test_a_real_run_conforms(run):
    assert run["code"] == 0, run["output"]
    report = check_trace([run["trace"]])
    assert report.conforms, render_trace(report)
    whole = {(node.peer.node, node.is_whole) for node in report.nodes}
    assert whole == {("router", True), ("decode-0", True), ("prefill-0", True), ("prefill-0", False)}
    assert report.unheard == ()
    assert all(node.stand_ins == 0 for node in report.nodes)
    assert all(node.left_open == 0 for node in report.nodes if node.is_whole)


def test_it_shows_what_happened(run):
    lines = [json.loads(line) for line in run["trace"].read_text().splitlines()]
    assert lines[0]["trace"] == 1
    told = {(line["role"], line["event"]) for line in lines if "event" in line}
    assert ("router", "ClientGone") in told
    assert ("decode", "Closed") in told
    assert ("prefill", "WriteCompleted") in told
    assert ("decode", "Cut") in told
    assert run["refused"] == 400


def test_it_holds_no_content_and_no_secrets(run):
    data = run["trace"].read_bytes()
    for content in (SECRET, run["answer"].strip(), "pelican", KEY, "anonymous", run["secret"].hex()):
        assert content.encode() not in data, f"{content!r} is in the trace"
    assert run["secret"] not in data
    assert run["trace"].stat().st_mode & 0o777 == 0o600


def test_a_path_that_cannot_be_written_is_refused_at_start(launch, tmp_path):
    deployment = launch("--trace", str(tmp_path / "nowhere" / "run.jsonl"))
    assert deployment.wait_exit() == 2
    assert "there is no directory" in deployment.output
