"""Two prefill and two decode nodes over tcp; who shares prefix pages, and who never does."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.deployment import wait_until

pytestmark = pytest.mark.e2e

FLAGS = (
    *("--prefill", "2", "--decode", "2", "--transport", "tcp"),
    *("--context", "1024", "--pool-tokens", "1536", "--lost-after-s", "8"),
)
NODES = ("prefill-0", "prefill-1", "decode-0", "decode-1")
RESTART_SECONDS_MAX = 180


@pytest.fixture(scope="module")
def deployment(launch):
    return launch(*FLAGS).wait_ready()


def ask_all(deployment, prompts, max_tokens):
    with ThreadPoolExecutor(len(prompts)) as pool:
        return list(pool.map(lambda prompt: deployment.complete(prompt, max_tokens), prompts))


def test_four_nodes_start_linked(deployment):
    nodes = {node["name"]: node for node in deployment.server_info()["nodes"]}
    assert sorted(nodes) == sorted(NODES)
    assert {node["transport"] for node in nodes.values()} == {"tcp"}
    assert [nodes[name]["linked_decode_nodes"] for name in ("prefill-0", "prefill-1")] == [2, 2]


def test_answers_are_right_and_every_node_has_its_share(deployment):
    facts = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin"}
    # Long enough that requests overlap, so that the second of each role is worth asking.
    filler = "Here is a list of well known facts about the world. " * 24
    prompts = [f"{filler}The capital of {country} is" for country in facts]
    for (country, capital), (status, body) in zip(
        facts.items(), ask_all(deployment, prompts, 16), strict=True
    ):
        assert status == 200, body
        assert capital in body["choices"][0]["text"], (country, body["choices"][0]["text"])
    for node in ("prefill-0", "prefill-1"):
        assert deployment.wait_metric(lambda value: value > 0, "kvfence_prefill_tokens_total", node=node) > 0
    for node in ("decode-0", "decode-1"):
        assert deployment.wait_metric(lambda value: value > 0, "kvfence_seals_verified_total", node=node) > 0
    deployment.assert_home()
    assert deployment.metric("kvfence_integrity_failures_total") == 0


def usage_of(deployment, prompt, key):
    status, body = deployment.complete(prompt, 8, key=key)
    assert status == 200, body
    return body["choices"][0]["text"], body["usage"]


def test_a_prefix_is_shared_within_a_tenant_and_never_across(deployment):
    """One request at a time goes to the first of two idle nodes, where the first one's pages are."""
    prompt = "The ship's log says: " + " ".join(f"day {day} wind {day * 7 % 12};" for day in range(40))
    text, cold = usage_of(deployment, prompt, "alice")
    assert cold["prompt_tokens_details"]["cached_tokens"] == 0
    assert cold["prompt_tokens"] > 200
    again, warm = usage_of(deployment, prompt, "alice")
    # Every full page but the one that holds the last token, which is always computed.
    assert warm["prompt_tokens_details"]["cached_tokens"] == (cold["prompt_tokens"] - 1) // 16 * 16
    assert warm["prompt_tokens"] == cold["prompt_tokens"], "usage counts the whole prompt"
    _, other = usage_of(deployment, prompt, "bob")
    assert other["prompt_tokens_details"]["cached_tokens"] == 0, "another tenant computes its own"
    _, nobody = usage_of(deployment, prompt, None)
    assert nobody["prompt_tokens_details"]["cached_tokens"] == 0
    _, others_again = usage_of(deployment, prompt, "bob")
    assert others_again["prompt_tokens_details"] == warm["prompt_tokens_details"]
    longer, grown = usage_of(deployment, prompt + text, "alice")
    assert grown["prompt_tokens_details"]["cached_tokens"] >= warm["prompt_tokens_details"]["cached_tokens"]
    assert text
    assert again
    assert longer
    deployment.assert_home()


def test_one_of_each_pair_dies_and_the_others_serve_meanwhile(deployment):
    # These are the ones that idle deployments ask first.
    old = {node: deployment.kill(node) for node in ("prefill-0", "decode-0")}
    status, body = deployment.complete("The capital of France is", 8, timeout=240)
    if status != 200:  # it was given to the dead twice before anybody knew
        assert (status, body["error"]["code"]) == (503, "peer_lost")
    for _ in range(3):
        status, body = deployment.complete("The capital of France is", 8, timeout=240)
        assert status == 200, body
        assert "Paris" in body["choices"][0]["text"]
    for node, pid in old.items():
        deployment.wait_output(f"{node} is back", RESTART_SECONDS_MAX)
        assert deployment.pid(node) != pid

    def linked():
        nodes = {node["name"]: node for node in deployment.server_info()["nodes"]}
        pairs = [nodes.get(name, {}).get("linked_decode_nodes") for name in ("prefill-0", "prefill-1")]
        return sorted(nodes) == sorted(NODES) and pairs == [2, 2]

    assert wait_until(linked, 60)
    deployment.assert_home()
    prompts = [f"Number {number} of the list is about the weather in" for number in range(8)]
    assert [status for status, _ in ask_all(deployment, prompts, 8)] == [200] * 8
    deployment.assert_home()
