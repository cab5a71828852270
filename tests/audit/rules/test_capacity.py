"""KVF101, KVF104, KVF118: each fires, and is silent where all is well."""

from tests.audit.hearing import node
from tests.audit.readers.samples import LMDEPLOY_LOG
from tests.audit.rules.auditing import findings, said, sglang

from kvfence.audit.rules import lowered, pool_too_small, unknown

FITS = {"max_total_num_tokens": 9000, "max_req_input_len": 4090, "context_length": 4096}
SMALL = {**FITS, "max_total_num_tokens": 2000, "max_req_input_len": 1994}


def test_a_pool_below_the_context_names_both_numbers_first():
    (one,) = findings(pool_too_small, sglang(**SMALL))
    assert one.what == "the pool of 2,000 tokens is smaller than the context of 4,096 (48.83% of it)"
    assert (
        one.fix
        == "lower the context (--context-length) to at most 1,994, or enlarge the pool to the context; then audit again"
    )
    assert one.evidence["pool_tokens"] == 2000
    assert one.evidence["pool_tokens read from"] == "GET /server_info max_total_num_tokens, token_capacity"
    assert one.severity == "critical"


def test_the_limit_alone_says_it_too():
    (one,) = said(pool_too_small, sglang(max_req_input_len=1994, context_length=4096))
    assert one[3] == (
        "what one request can have is smaller than the context: 1,994 tokens are less than the context of 4,096 "
        "(48.68% of it)"
    )


def test_a_line_of_a_log_is_pointed_to():
    (one,) = findings(pool_too_small, node("hello", "max_total_num_tokens=2000, x=1, context_len=4096, y=1"))
    assert (one.place.path, one.place.line) == ("node.log", 2)


def test_an_engine_that_refused_to_start_leaks_nothing():
    line = "ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in KV cache (2000)."
    (one,) = said(pool_too_small, node(line))
    assert one[1] == "high" and one[3].endswith("it refused to start so")


def test_a_concurrency_below_one():
    line = "Maximum concurrency for 262,144 tokens per request: 0.47x"
    (one,) = said(pool_too_small, node("GPU KV cache size: 302,945 tokens", line))
    assert "262,144" in one[3] and "(47.00% of it)" in one[3]


def test_a_pool_that_fits_is_silent_and_so_is_one_that_is_not_known():
    silent = (sglang(**FITS), sglang(version="1"), node(name="gone", failure="x"))
    assert said(pool_too_small, *silent) == []


def test_what_is_not_known_is_said_with_the_engine_and_why():
    (one,) = findings(unknown, node("[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 631"))
    assert (one.code, one.severity) == ("KVF104", "medium")
    assert one.what == "pool and context could not be read (tensorrt-llm)"
    assert "631 blocks" in one.evidence["note 1"]
    (one,) = said(unknown, node("hello"))
    assert one[3].endswith("(an engine that this audit does not know)")


def test_what_is_known_or_not_reached_is_no_unknown():
    assert said(unknown, sglang(**FITS), sglang(**SMALL), node(name="gone", failure="x")) == []


def test_a_context_that_was_lowered():
    (one,) = said(lowered, node(*LMDEPLOY_LOG))
    assert one[:2] == ("KVF118", "low")
    assert one[3].startswith("64,000 tokens are served of a context of 131,072: the engine lowered")
    assert said(lowered, sglang(**FITS), sglang(**SMALL)) == []
