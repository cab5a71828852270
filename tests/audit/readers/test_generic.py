"""An engine that nobody knows: said to be unknown, and read where it is plain."""

import pytest
from tests.audit.hearing import figures, node

CAPACITY = {
    "schema_version": 1,
    "engines": [
        {"dp_rank": 0, "max_model_len": 131072, "max_num_seqs": 256, "kv_cache_capacity_tokens": 3775455},
        {"dp_rank": 1, "max_model_len": 131072, "kv_cache_capacity_tokens": 3775400},
    ],
}


def test_an_honest_shape_is_read_and_the_engine_said_to_be_unknown():
    one = node(pages={"/v1/capacity": CAPACITY})
    assert figures(one) == {"pool_tokens": 3775400, "context_tokens": 131072}
    assert (one.reading.engine, one.judgement.verdict) == (None, "ok")
    assert "not known to this audit" in one.reading.notes[-1]


def test_a_summary_of_a_start():
    one = node("Context length 655360", "Requested total KV pool 1500000", "Actual allocated KV pool 1499904")
    assert figures(one) == {"pool_tokens": 1499904, "context_tokens": 655360}


def test_pages_without_their_size_are_no_tokens():
    one = node("resolved moe_cache_size=10114 num_pages=7209 (prefill_overlap=True)")
    assert (figures(one), one.judgement.verdict) == ({}, "unknown")
    assert "counts pages" in one.reading.notes[0]


@pytest.mark.parametrize(
    "line", ["max_model_len 500K", "kv_cache_capacity_tokens=1.5M", "Context length 64K"]
)
def test_numbers_with_a_unit_are_left_alone(line):
    assert figures(node(line)) == {}


def test_metrics_and_models_with_plain_names():
    models = {"object": "list", "data": [{"id": "m", "owned_by": "somebody", "max_model_len": 4096}]}
    one = node(pages={"/metrics": "kv_cache_capacity_tokens 9000\n", "/v1/models": models})
    assert figures(one) == {"pool_tokens": 9000, "context_tokens": 4096, "advertised_tokens": 4096}
