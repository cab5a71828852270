"""llama.cpp: slots against cells, pools without layers, and three forms of its log."""

from tests.audit.hearing import figures, node, settings
from tests.audit.readers.samples import LLAMACPP_LOG, LLAMACPP_PROPS, models


def test_a_start_whose_slots_share_the_cells():
    one = node(*LLAMACPP_LOG)
    assert figures(one) == {"context_tokens": 2048, "pool_tokens": 2048}
    assert settings(one) == {"slots": 4, "slots_share_cells": True}
    assert (one.reading.version, one.judgement.verdict) == ("b9265", "ok")


def test_slots_alone_do_not_say_how_many_cells_there_are():
    one = node(
        "slot   load_model: id  0 | task -1 | new slot, n_ctx = 2048",
        "slot   load_model: id  3 | task -1 | new slot, n_ctx = 2048",
    )
    assert (figures(one), settings(one)) == ({"context_tokens": 2048}, {"slots": 4})
    assert one.judgement.verdict == "unknown"


def test_cells_of_each_slots_own():
    one = node(
        "llama_kv_cache: size =  224.00 MiB (  2048 cells,  28 layers,  4/4 seqs), K (f16)",
        "slot   load_model: id  0 | task -1 | new slot, n_ctx = 2048",
    )
    assert settings(one)["slots_share_cells"] is False


def test_a_context_that_is_capped_by_slot():
    one = node(
        "0.02.635.267 W llama_context: n_ctx_seq (8192) < n_ctx_train (131072) -- the full capacity of the model will not be utilized",
        "0.02.700.001 I srv    load_model: capping per-slot context (8192) to --kv-unified-per-slot (2048)",
        "0.02.700.002 I slot   load_model: id  0 | task -1 | new slot, n_ctx = 2048",
    )
    assert figures(one) == {
        "advertised_tokens": 131072,
        "context_tokens": 2048,
        "pool_tokens": 8192,
        "largest_request_tokens": 2048,
    }
    assert settings(one) == {"slots": 1, "slots_share_cells": True}
    assert one.judgement.verdict == "ok"


def test_an_error_of_a_request_gives_the_context():
    error = {
        "error": {
            "code": 500,
            "message": "the request exceeds the available context size. try increasing the context size",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 1407,
            "n_ctx": 512,
        }
    }
    wanted = {"context_tokens": 512, "largest_request_tokens": 512}
    assert figures(node(saved={"error.json": error})) == wanted
    line = '{"error":{"code":500,"type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":512}}'
    assert figures(node(line)) == wanted


def test_the_old_structured_log_divides_the_cells_among_the_slots():
    slots = 'INFO [                    init] initializing slots | tid="1" timestamp=1742136993 n_slots=2'
    slot = (
        'INFO [                    init] new slot | tid="1" timestamp=1742136993 id_slot=0 n_ctx_slot=16384'
    )
    one = node(slots, slot, "llama_kv_cache_init:      CUDA0 KV buffer size =  1166.65 MiB")
    assert figures(one) == {"context_tokens": 16384, "pool_tokens": 32768}
    assert one.judgement.verdict == "ok"
    older = node(
        "srv  init: initializing slots, n_slots = 2",
        "slot init: id  1 | task -1 | new slot n_ctx_slot = 4096",
    )
    assert (figures(older), settings(older)) == ({"context_tokens": 4096}, {"slots": 2})


def test_a_pool_without_layers_is_no_pool():
    one = node(
        "llama_context: n_ctx_seq (196608) < n_ctx_train (524288) -- the full capacity of the model will not be utilized",
        "llama_kv_cache_iswa: creating non-SWA KV cache, size = 196608 cells",
        "llama_kv_cache: size =    0.00 MiB (196608 cells,   0 layers,  4/1 seqs)",
        "llama_kv_cache_iswa: creating     SWA KV cache, size = 4096 cells",
    )
    assert figures(one) == {
        "advertised_tokens": 524288,
        "pool_tokens": 196608,
        "swa_pool_tokens": 4096,
        "context_tokens": 196608,
        "largest_request_tokens": 196608,
    }
    assert one.judgement.limit_tokens == 196608
    assert "pool_tokens" not in figures(
        node("llama_kv_cache: size =    0.00 MiB (196608 cells,   0 layers,  4/1 seqs)")
    )


def test_props_and_models():
    card = models("llamacpp", meta={"n_ctx_train": 32768})
    one = node(pages={"/props": LLAMACPP_PROPS, "/v1/models": card})
    assert figures(one) == {"context_tokens": 2048, "advertised_tokens": 32768}
    assert settings(one) == {"slots": 4}
    assert (one.reading.version, one.judgement.verdict) == ("b9265-0a1b2c3d", "unknown")


def test_the_older_name_of_a_sequences_context():
    one = node("llama_context: n_ctx_per_seq (4096) < n_ctx_train (32768) -- the full capacity is not used")
    assert figures(one) == {
        "advertised_tokens": 32768,
        "context_tokens": 4096,
        "largest_request_tokens": 4096,
    }
