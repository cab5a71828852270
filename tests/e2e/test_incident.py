"""The incident, on real processes and a real model: each layer of the fence alone stops it.

A prompt longer than the prefill pool, and shorter than the decode pool, is what went wrong in
production: rejected, replaced by a placeholder, and decoded over pages that another tenant had filled.
Here it happens again, with the fence off; then the layers are left out one after the other, and the next
one has to speak.
"""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment

pytestmark = pytest.mark.e2e

SECRET = "zanzibar-4417-quokka"
SECRET_PROMPT = f"The secret word of tenant A is {SECRET}. "
CONTEXT_TOKENS = 8192  # the model's own
POOLS = (
    "--context",
    "1024",
    "--prefill-pool-tokens",
    "256",
    "--decode-pool-tokens",
    "1024",
    "--page-tokens",
    "16",
)
UNSAFE = ("--i-understand-this-leaks-data",)
ADMISSION = ("--unsafe-fault", "rejected-continues/admission-unchecked")
PLACEHOLDER = ("--unsafe-fault", "rejected-continues/split-state")
INCIDENT = ("--unsafe-fault", "rejected-continues/incident")
NO_MANIFEST = ("--unsafe-without", "manifest")
NO_SEAL = ("--unsafe-without", "seal")


@pytest.fixture
def home():
    """A run-time directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="kvf-"))
    yield path
    shutil.rmtree(path)


def ask(deployment, tenant, text, max_tokens=16):
    return deployment.post(
        "/v1/completions",
        {"model": "smollm2-135m-instruct", "prompt": text, "max_tokens": max_tokens, "temperature": 0},
        headers={"Authorization": f"Bearer {tenant}"},
    )


def plant(deployment):
    """Tenant A fills the decode pool with its secret, several times over, and leaves."""
    for _ in range(6):
        status, reply = ask(deployment, "tenant-a", f"The secret word is {SECRET}. " * 12)
        assert status == 200, reply


def leak_attempt(deployment):
    """Tenant B's prompt in the band between the two pools."""
    plant(deployment)
    status, reply = ask(deployment, "tenant-b", "And then " * 300)
    assert SECRET not in str(reply)
    assert "zanzibar" not in str(reply).lower()
    return status, reply


def healthy(deployment):
    """The deployment goes on serving others."""
    status, reply = ask(deployment, "tenant-b", "One plus one is", max_tokens=4)
    assert status == 200, reply


def all_pages_home(deployment, poisoned=0):
    pages = 1024 // 16 + 16 - poisoned
    name = "kvfence_pool_pages"
    assert deployment.wait_metric(lambda value: value == pages, name, node="decode-0", state="free") == pages
    assert deployment.metric(name, node="decode-0", state="poisoned") == poisoned


def test_with_the_fence_off_it_happens_again(home):
    with Deployment(home, "--pool-tokens", "2048", *INCIDENT, "--fence", "off", *UNSAFE) as deployment:
        assert deployment.server_info()["largest_request_tokens"] == CONTEXT_TOKENS
        # Tenant A fills as much as a prefill pool holds, and leaves.
        status, reply = ask(deployment, "tenant-a", SECRET_PROMPT * 100, max_tokens=32)
        assert status == 200, reply
        # Tenant B's prompt is one token longer than that pool.
        status, reply = ask(deployment, "tenant-b", "And then " * 1024, max_tokens=32)
        assert status == 200
        assert reply["usage"]["prompt_tokens"] == 2049
        assert SECRET in reply["choices"][0]["text"]


def test_admission_refuses_with_both_numbers(home):
    fits = (*POOLS[2:], "--context", "fit")
    with Deployment(home, *fits, *PLACEHOLDER, *NO_MANIFEST, *NO_SEAL, *UNSAFE) as deployment:
        status, reply = leak_attempt(deployment)
        assert status == 400
        assert reply["error"]["code"] == "context_length_exceeded"
        assert "256" in reply["error"]["message"]
        assert "617" in reply["error"]["message"]  # 601 of the prompt, 16 asked for
        healthy(deployment)


def test_prefill_refuses_when_the_router_does_not(home):
    with Deployment(home, *POOLS, *ADMISSION, *UNSAFE) as deployment:
        status, reply = leak_attempt(deployment)
        assert status == 400
        assert reply["error"]["code"] == "context_length_exceeded"
        spoke = deployment.wait_metric(
            bool, "kvfence_refusals_total", node="prefill-0", reason="context_length_exceeded"
        )
        assert spoke == 1
        healthy(deployment)
        all_pages_home(deployment)


@pytest.mark.parametrize(
    ("broken", "reason", "poisoned"),
    [
        pytest.param((), "manifest_tokens", 0, id="manifest"),
        # The one page that was written holds fewer tokens than a full one: it is set apart.
        pytest.param(NO_MANIFEST, "seal_torn", 1, id="seal"),
        pytest.param((*NO_MANIFEST, *NO_SEAL), "guard_seal", 0, id="guard"),
    ],
)
def test_decode_refuses_what_nobody_wrote(home, broken, reason, poisoned):
    with Deployment(home, *POOLS, *INCIDENT, *broken, *UNSAFE) as deployment:
        status, reply = leak_attempt(deployment)
        assert status == 500
        assert reply["error"]["code"] == "integrity"
        name = "kvfence_integrity_failures_total"
        assert deployment.wait_metric(bool, name, node="decode-0", reason=reason) == 1
        assert deployment.metric(name) == 1
        healthy(deployment)
        all_pages_home(deployment, poisoned)


def test_an_unsafe_deployment_says_so_everywhere(home):
    with Deployment(home, *POOLS, *ADMISSION, *NO_SEAL, *UNSAFE) as deployment:
        deployment.wait_output("lets one tenant read another's data")
        assert deployment.metric("kvfence_unsafe_faults", fault=ADMISSION[1]) == 1
        assert deployment.metric("kvfence_unsafe_without", layer="seal") == 1
        assert deployment.server_info()["unsafe_faults"] == [ADMISSION[1]]
        assert deployment.server_info()["unsafe_without"] == ["seal"]
        assert deployment.header("/health", "x-kvfence-unsafe") == f"{ADMISSION[1]},without-seal"
