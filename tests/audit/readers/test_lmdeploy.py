"""LMDeploy: blocks with and without their size, and a session length that the engine lowers."""

from tests.audit.hearing import figures, node, settings
from tests.audit.readers.samples import LMDEPLOY_LOG, models


def test_a_session_length_that_was_lowered_is_pool_and_limit():
    one = node(*LMDEPLOY_LOG)
    assert figures(one) == {"pool_tokens": 64000, "context_tokens": 131072, "largest_request_tokens": 64000}
    assert settings(one) == {"context_lowered": True}
    assert (one.judgement.verdict, one.judgement.limit_tokens) == ("lowered", 64000)


def test_blocks_with_their_size():
    one = node(
        "[TM][WARNING] [LlamaTritonModel] `cache_block_seq_len` is not set, default to 128.",
        "[TM][INFO] [BlockManager] block_size = 64 MB",
        "[TM][INFO] [BlockManager] max_block_count = 48",
        "[TM][INFO] session_len = 512, input_length = 51",
    )
    assert figures(one) == {"page_tokens": 128, "pool_tokens": 48 * 128, "context_tokens": 512}
    assert one.judgement.verdict == "ok"


def test_blocks_without_their_size_are_no_pool():
    one = node("[TM][INFO] [BlockManager] max_block_count = 48")
    assert (figures(one), one.judgement.verdict) == ({}, "unknown")
    assert "48 blocks" in one.reading.notes[0]


def test_models():
    assert figures(node(pages={"/v1/models": models("lmdeploy", max_model_len=4096)})) == {
        "advertised_tokens": 4096
    }
