"""One node of what was declared and heard: its name, its role, what is declared of its environment."""

import pytest
from tests.audit.hearing import node, nodes, settings
from tests.audit.readers.samples import SGLANG_FINAL, SGLANG_INFO, SGLANG_METRICS

from kvfence.audit.node import BATCH_INDICES, DEFERRED_RELEASE
from kvfence.report import Place


def test_answers_saved_answers_and_the_log_are_one_node_and_answers_come_first():
    one = node(SGLANG_FINAL, pages={"/server_info": SGLANG_INFO}, saved={"metrics.txt": SGLANG_METRICS})
    figures = one.reading.figures
    assert figures["pool_tokens"].read_from.startswith("GET /server_info")
    one = node(SGLANG_FINAL, saved={"metrics.txt": SGLANG_METRICS})
    assert one.reading.figures["context_tokens"].read_from == "metrics.txt sglang:context_len"


def test_a_role_that_is_declared_has_the_last_word():
    assert node(pages={"/server_info": SGLANG_INFO}).role == "decode"
    assert node(pages={"/server_info": SGLANG_INFO}, role="prefill").role == "prefill"


def test_the_environment_is_what_the_operator_says():
    place = Place(path="d.toml", line=7)
    one = node(SGLANG_FINAL, env={DEFERRED_RELEASE: "True", BATCH_INDICES: "256"}, place=place)
    assert settings(one) == {"deferred_release": True, "transfer_batch_max": 256}
    assert one.reading.figures["set.deferred_release"].read_from == "d.toml:7 env"
    assert settings(node(SGLANG_FINAL, env={DEFERRED_RELEASE: "0", BATCH_INDICES: "x"})) == {
        "deferred_release": False
    }


def test_a_version_is_declared_where_the_log_does_not_tell_it():
    assert node(SGLANG_FINAL, version="0.5.19").reading.version == "0.5.19"
    assert node(pages={"/server_info": SGLANG_INFO}, version="0.5.19").reading.version == "0.5.23"


def test_where_a_figure_stands():
    place = Place(path="d.toml", line=7)
    one = node(SGLANG_FINAL, place=place)
    assert one.place("pool_tokens") == Place(path="node.log", line=1)
    assert one.place("advertised_tokens") == place
    assert node(SGLANG_FINAL, reads_stdin=True).place("pool_tokens") is None


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("http://127.0.0.1:1", True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://10.0.0.1:1", False),
        ("http://api.example", False),
        (None, False),
    ],
)
def test_loopback(url, is_loopback):
    assert node(SGLANG_FINAL, url=url).is_loopback is is_loopback


def test_a_node_that_was_not_heard():
    one = node(failure="nothing answers", role="prefill")
    assert (one.judgement.verdict, one.judgement.why, one.role) == (
        "unreachable",
        "nothing answers",
        "prefill",
    )


def test_a_node_whose_address_is_silent_is_judged_by_its_log():
    one = node(SGLANG_FINAL, failure="nothing answers")
    assert (one.judgement.verdict, one.failure) == ("ok", "nothing answers")


def test_containers_are_named_by_themselves():
    lines = [f"[pod/{pod}/s] {SGLANG_FINAL}" for pod in ("a", "b")]
    assert [one.name for one in nodes(*lines)] == ["a/s", "b/s"]
    assert [one.name for one in nodes(lines[0])] == ["node"]


def test_pages_and_logs_of_several_containers_stay_apart():
    lines = [f"[pod/{pod}/s] {SGLANG_FINAL}" for pod in ("a", "b")]
    assert [one.name for one in nodes(*lines, pages={"/server_info": SGLANG_INFO})] == ["node", "a/s", "b/s"]


@pytest.mark.parametrize("info", [{"api_key": "k"}, {"server_args": {"admin_api_key": "k"}}])
def test_an_answer_that_holds_the_key_is_noticed_and_the_key_is_not_kept(info):
    one = node(pages={"/server_info": {**SGLANG_INFO, **info}}, url="http://a")
    assert one.shows_key
    assert not node(pages={"/server_info": {**SGLANG_INFO, "api_key": None}}, url="http://a").shows_key
    assert not node(saved={"x": {**SGLANG_INFO, **info}}).shows_key
    assert "'k'" not in repr(one)


def test_a_node_that_answers_and_says_nothing_is_unknown_and_not_left_out():
    one = node(url="http://node:1")
    assert (one.name, one.judgement.verdict) == ("node", "unknown")


def test_what_the_bounds_of_a_log_left_out_is_no_pass():
    sizes = (76_640, *range(900_000, 900_020))
    one = node(
        "INFO Using max model len 262144",
        *(f"INFO GPU KV cache size: {size:,} tokens" for size in sizes),
    )
    assert one.judgement.verdict == "unknown"
    assert "left out" in one.judgement.why
