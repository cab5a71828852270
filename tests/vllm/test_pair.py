"""vLLM's disaggregated pair over NIXL on one machine, unchanged, behind a toy proxy.

Through the proxy, at once, nothing is found. A hand-off that waits past the producer's lease while other
prompts take its pages is read all the same: `stale-handoff` finds it.
"""

from kvfence.report import NodeRead, PairRead, Verdict
from tests.vllm.conftest import CONTEXT, POOL
from tests.vllm.instruments import kvfence
from tests.vllm.marks import WITH_VLLM

SEED = "7"
# The machine is slow and may be busy: the clock ends nothing, only the number of requests does.
PATIENT = ("--budget", "seconds=2400")
EXPIRED, FAILED = "vllm:nixl_num_kv_expired_reqs_total", "vllm:nixl_num_failed_transfers_total"
READ_TOO_LATE = "were retrieved by a decode worker. They may have expired"
pytestmark = WITH_VLLM


def profile(home, pair):
    """The proxy as the target, and the two nodes where they can be asked directly."""
    prefill, decode, proxy = pair
    lines = ["[[target]]", 'name = "pair"', f'url = "{proxy.url}/v1"', "own_server = true"]
    lines += [f'nodes = ["{prefill.url}/v1", "{decode.url}/v1"]']
    path = home / "pair.toml"
    path.write_text("\n".join(lines))
    return path


def test_the_audit_reads_both_and_their_limit(pair, home, kept):
    prefill, decode, _ = pair
    nodes = ("--prefill", prefill.url, "--decode", decode.url)
    ran = kvfence(home, "audit", *nodes)
    kept("pair: audit", ran, PREFILL=prefill.url, DECODE=decode.url)
    for node in ran.of(NodeRead):
        figures = {name: figure.value for name, figure in node.figures.items()}
        assert (node.engine_version, figures["context_tokens"], figures["pool_tokens"]) == (
            "0.32.0",
            CONTEXT,
            POOL,
        )
    (read,) = ran.of(PairRead)
    assert read.limit_tokens == CONTEXT


def test_its_logs_tell_roles_and_connector(pair, home, kept):
    prefill, decode, _ = pair
    ran = kvfence(home, "audit", str(prefill.log_file), str(decode.log_file))
    kept("pair: audit of the logs", ran)
    assert [node.role for node in ran.of(NodeRead)] == ["prefill", "decode"]
    for node in ran.of(NodeRead):
        assert node.figures["set.kv_connector"].value == "NixlConnector"
        assert node.figures["set.kv_load_failure_policy"].value == "fail"


def test_quick_through_the_proxy_finds_no_leak(pair, home, kept):
    targets = profile(home, pair)
    ran = kvfence(home, "check", "--targets", str(targets), "--seed", SEED, *PATIENT)
    kept("pair: check quick", ran, TARGETS=str(targets))
    assert ran.hard == {}
    assert ran.verdicts["marker-sweep"] is Verdict.NO_EVIDENCE, ran.output


def test_a_handoff_past_its_lease_is_found(pair, home, kept):
    prefill, decode, _ = pair
    targets = profile(home, pair)
    words = ("--only", "stale-handoff", "--seed", SEED, *PATIENT)
    ran = kvfence(home, "check", "--targets", str(targets), *words)
    said = {
        "leases that ended unread, as prefill counts them": prefill.metric(EXPIRED),
        "reads of what was no longer held, in prefill's log": prefill.log.count(READ_TOO_LATE),
        "failed transfers, as decode counts them": decode.metric(FAILED),
    }
    kept("pair: check stale-handoff", ran, said, TARGETS=str(targets))
    assert ran.exit_code == 1, ran.output
    assert ran.verdicts["stale-handoff"] in {Verdict.LEAK, Verdict.EXPOSED}
    assert said["failed transfers, as decode counts them"] == 0
