"""One healthy vLLM on this machine's CPU: its audit is right, and its check finds no leak.

Two keys are no tenants to vLLM: what one key left in the prefix cache serves the other. That is a finding
(*exposed*), and it is expected here; with a `cache_salt` for each tenant there must be none.
"""

import pytest

from kvfence.report import NodeRead, Verdict
from tests.vllm.conftest import CONTEXT, KEYS, POOL
from tests.vllm.instruments import kvfence
from tests.vllm.marks import WITH_VLLM

SEED = "7"
# The machine is slow and may be busy: the clock ends nothing, only the number of requests does.
PATIENT = ("--budget", "seconds=2400")
pytestmark = WITH_VLLM


def profile(home, url, *, salted):
    """A target with two tenants, each with a salt of its own or none."""
    lines = ["[[target]]", 'name = "single"', f'url = "{url}/v1"', "two_tenants = true", "own_server = true"]
    for name in KEYS:
        lines += ["[[target.tenant]]", f'name = "{name[-5:].strip("_").lower()}"', f'key_env = "{name}"']
        lines += [f'body = {{ cache_salt = "salt of {name}" }}'] if salted else []
    path = home / f"targets-{salted}.toml"
    path.write_text("\n".join(lines))
    return path


def test_the_audit_reads_it_right(single, home, kept):
    words = ("--key-env", "KVFENCE_KEY_BLUE")
    ran = kvfence(home, "audit", single.url, *words, env=KEYS)
    kept("single: audit", ran, URL=single.url)
    (node,) = ran.of(NodeRead)
    figures = {name: figure.value for name, figure in node.figures.items()}
    assert (node.engine, node.engine_version) == ("vllm", "0.32.0")
    assert figures["context_tokens"] == CONTEXT
    assert figures["advertised_tokens"] == CONTEXT
    assert figures["pool_tokens"] == POOL
    assert figures["concurrency"] == pytest.approx(POOL / CONTEXT, abs=0.02)
    assert node.verdict == "ok"
    assert ran.exit_code == 0, ran.output


def test_its_log_says_the_same(single, home, kept):
    ran = kvfence(home, "audit", str(single.log_file))
    kept("single: audit of the log", ran, LOG=str(single.log_file))
    (node,) = ran.of(NodeRead)
    figures = {name: figure.value for name, figure in node.figures.items()}
    assert (node.engine, node.engine_version) == ("vllm", "0.32.0")
    assert (figures["context_tokens"], figures["pool_tokens"]) == (CONTEXT, POOL)
    assert ran.exit_code == 0, ran.output


def test_a_prompt_over_its_context_is_refused(single):
    status, body = single.complete([100] * (CONTEXT + 1), max_tokens=1)
    assert status == 400
    assert str(CONTEXT) in body["error"]["message"]


def test_quick_finds_no_leak(single, home, kept):
    targets = profile(home, single.url, salted=False)
    ran = kvfence(home, "check", "--targets", str(targets), "--seed", SEED, *PATIENT, env=KEYS)
    kept("single: check quick", ran, TARGETS=str(targets))
    assert ran.hard == {}
    assert ran.verdicts["boundary"] is Verdict.NO_EVIDENCE, ran.output
    assert ran.verdicts["marker-sweep"] is Verdict.NO_EVIDENCE, ran.output


@pytest.mark.parametrize(
    "scenario", ["churn-steady", "full-pool", "abort-refill", "id-collision", "mixed-constraints"]
)
def test_one_of_the_longer_scenarios_finds_no_leak(single, home, kept, scenario):
    ran = alone(single, home, kept, scenario, salted=False)
    assert ran.hard == {}
    assert scenario in ran.verdicts


@pytest.mark.parametrize("salted", [False, True], ids=["by keys alone", "with a salt each"])
def test_reuse_across_tenants_shows_unless_each_has_a_salt(single, home, kept, salted):
    ran = alone(single, home, kept, "cross-tenant-reuse", salted=salted)
    assert ran.hard == {}
    expected = Verdict.NO_EVIDENCE if salted else Verdict.EXPOSED
    assert ran.verdicts["cross-tenant-reuse"] is expected, ran.output
    assert ("KVF207" in ran.codes) is not salted


def alone(single, home, kept, scenario, *, salted):
    """One scenario, whatever the profile takes."""
    targets = profile(home, single.url, salted=salted)
    words = ("--only", scenario, "--seed", SEED, *PATIENT)
    ran = kvfence(home, "check", "--targets", str(targets), *words, env=KEYS)
    kept(f"single: check {scenario}{' with salts' if salted else ''}", ran, TARGETS=str(targets))
    return ran
