"""TensorRT-LLM: blocks are tokens only with their size, and three figures may bound a request."""

from tests.audit.hearing import figures, node, settings
from tests.audit.readers.samples import TRTLLM_LOG, TRTLLM_METRICS, models


def test_a_start():
    one = node(*TRTLLM_LOG)
    assert figures(one) == {"pool_tokens": 65536, "context_tokens": 32768}
    assert (one.reading.version, one.judgement.verdict) == ("0.21.0", "ok")


def test_tokens_without_a_context_are_unknown():
    one = node(
        "[TensorRT-LLM][INFO] Allocate 69524783104 bytes for k/v cache. ",
        "[TensorRT-LLM][INFO] Using 232608 tokens in paged KV cache.",
    )
    assert (figures(one), one.judgement.verdict) == ({"pool_tokens": 232608}, "unknown")


def test_the_newer_line_of_an_allocation():
    line = "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 27.36 GiB for max tokens in paged KV cache (229,792)."
    assert figures(node(line)) == {"pool_tokens": 229792}


def test_blocks_alone_are_no_tokens():
    line = "[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 631, extra: 0"
    one = node(line)
    assert (figures(one), one.judgement.verdict) == ({}, "unknown")
    assert "631 blocks" in one.reading.notes[0]
    both = node("[TensorRT-LLM][INFO] Number of tokens per block: 64.", line)
    assert figures(both) == {"page_tokens": 64, "pool_tokens": 631 * 64}


def test_the_longest_input_may_be_far_below_the_context():
    one = node(
        "[TensorRT-LLM][INFO] TRTGptModel maxSequenceLen: 524288",
        "[TensorRT-LLM][INFO] TRTGptModel maxInputLen: 4096 = min(maxSequenceLen - 1, maxNumTokens) since context FMHA",
    )
    assert figures(one) == {"context_tokens": 524288, "largest_request_tokens": 4096}
    assert (one.judgement.verdict, one.judgement.limit_tokens) == ("unknown", 4096)


def test_a_context_that_the_engine_lowered():
    one = node("[TensorRT-LLM][WARNING] max_seq_len 891048 -> 689502 (clamped)")
    assert figures(one) == {"context_tokens": 891048, "largest_request_tokens": 689502}
    assert (one.judgement.verdict, one.judgement.limit_tokens) == ("lowered", 689502)
    assert figures(node("[TensorRT-LLM][INFO] max_seq_len 10 -> 20")) == {}


def test_metrics_of_the_triton_backend_and_its_version():
    one = node(pages={"/metrics": TRTLLM_METRICS, "/v2": {"name": "triton", "version": "2.60.0"}})
    assert figures(one) == {"pool_tokens": 2448 * 64, "page_tokens": 64}
    assert (settings(one), one.reading.version) == ({"triton_version": "2.60.0"}, None)


def test_statistics_of_iterations_and_the_newest_of_them():
    statistics = [
        {"kvCacheStats": {"maxNumBlocks": 7, "tokensPerBlock": 32}},
        {"kv_cache_stats": {"max_num_blocks": 101, "tokens_per_block": 32}},
    ]
    one = node(pages={"/metrics": statistics, "/v1/models": models("tensorrt_llm", max_model_len=2048)})
    assert figures(one) == {"pool_tokens": 101 * 32, "page_tokens": 32, "advertised_tokens": 2048}
