"""Verdicts: what is ok, too small, lowered, unknown; never ok without the figures."""

import pytest

from kvfence.audit.judge import Judgement, judge, judge_unreachable
from kvfence.audit.reading import Reading
from kvfence.report import Figure


def reading(engine="x", **figures):
    named = {
        name.replace("set_", "set."): Figure(value=value, read_from="x") for name, value in figures.items()
    }
    return Reading(engine, figures=named)


@pytest.mark.parametrize(
    ("engine", "figures", "verdict", "limit"),
    [
        ("x", {"pool_tokens": 100, "context_tokens": 100}, "ok", 100),
        ("x", {"pool_tokens": 99, "context_tokens": 100}, "too small", 99),
        ("x", {"pool_tokens": 100}, "unknown", None),
        ("x", {"context_tokens": 100}, "unknown", None),
        ("x", {}, "unknown", None),
        ("x", {"context_tokens": 100, "largest_request_tokens": 50}, "unknown", 50),
        ("x", {"pool_tokens": 100, "context_tokens": 100, "largest_request_tokens": 50}, "lowered", 50),
        ("x", {"pool_tokens": 60, "context_tokens": 100, "largest_request_tokens": 50}, "lowered", 50),
        ("x", {"pool_tokens": 40, "context_tokens": 100, "largest_request_tokens": 50}, "too small", 40),
        (
            "kvfence",
            {"pool_tokens": 50, "context_tokens": 100, "largest_request_tokens": 50},
            "too small",
            50,
        ),
        ("sglang", {"pool_tokens": 2000, "context_tokens": 4096}, "too small", 2000),
        ("sglang", {"pool_tokens": 5000, "context_tokens": 4096}, "ok", 4096),
        ("sglang", {"largest_request_tokens": 4090, "context_tokens": 4096}, "ok", 4090),
        ("sglang", {"largest_request_tokens": 4000, "context_tokens": 4096}, "too small", 4000),
        ("sglang", {"largest_request_tokens": 4090}, "unknown", 4090),
        (
            "sglang",
            {"largest_request_tokens": 4090, "context_tokens": 4096, "pool_tokens": 4095},
            "too small",
            4090,
        ),
        ("vllm", {"concurrency": 2.0}, "ok", None),
        ("vllm", {"concurrency": 0.5}, "too small", None),
        ("vllm", {"concurrency": 0.5, "context_tokens": 100}, "too small", 50),
        ("vllm", {"concurrency": 2, "context_tokens": 100, "pool_tokens": 50}, "ok", 100),
        ("vllm", {"pool_tokens": 99, "context_tokens": 100}, "too small", 99),
        ("vllm", {"pool_tokens": 100, "context_tokens": 100}, "ok", 100),
        ("vllm", {"pool_tokens": 100}, "unknown", None),
    ],
)
def test_verdicts(engine, figures, verdict, limit):
    judged = judge(reading(engine, **figures), None)
    assert (judged.verdict, judged.limit_tokens) == (verdict, limit)


def test_the_incident():
    judged = judge(reading("sglang", pool_tokens=681280, context_tokens=1048576), "prefill")
    assert (judged.verdict, judged.limit_tokens) == ("too small", 681280)
    assert judged.why == "681,280 tokens are less than the context of 1,048,576"
    assert round(judged.ratio, 4) == 0.6497


def test_a_context_that_the_engine_lowered_by_itself():
    judged = judge(reading(context_tokens=100, largest_request_tokens=60, set_context_lowered=True), None)
    assert (judged.verdict, judged.limit_tokens) == ("lowered", 60)


@pytest.mark.parametrize(
    ("figures", "limit"), [({"largest_request_tokens": 80}, 80), ({"pool_tokens": 70}, 70), ({}, None)]
)
def test_a_context_with_which_the_engine_refused_to_start(figures, limit):
    judged = judge(reading("vllm", context_tokens=100, set_refused_to_start=True, **figures), None)
    assert (judged.verdict, judged.limit_tokens) == ("too small", limit)


def test_a_router_has_no_pool_and_one_that_has_is_no_router():
    assert judge(reading(), "router").verdict == "no pool"
    assert judge(reading(pool_tokens=5, context_tokens=9), "router").verdict == "too small"


def test_unknown_names_what_is_missing():
    assert judge(reading(pool_tokens=1), None).why == "context could not be read"
    assert judge(reading(), None).why == "pool and context could not be read"


def test_unreachable():
    assert judge_unreachable("why") == Judgement("unreachable", "why")
