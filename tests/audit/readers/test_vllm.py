"""vLLM: V0 and V1 logs, group-aware metrics, hybrid models, and where two figures contradict each other."""

import pytest
from tests.audit.hearing import figures, node, settings
from tests.audit.readers.samples import VLLM_LOG, VLLM_METRICS, models

SIZE = "INFO [kv_cache_utils.py:1319] GPU KV cache size: {} tokens"
CONCURRENCY = "INFO [kv_cache_utils.py:1324] Maximum concurrency for {} tokens per request: {}x"


def info(**labels):
    inside = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"vllm:cache_config_info{{{inside}}} 1.0\n"


def test_the_log_of_a_start():
    one = node(*VLLM_LOG)
    assert figures(one) == {"concurrency": 5.69, "context_tokens": 8192, "pool_tokens": 46592}
    assert (one.reading.version, one.judgement.verdict) == ("0.19.0", "ok")
    assert one.judgement.ratio == pytest.approx(5.6875)


def test_both_figures_in_one_line():
    line = "CPU KV cache size: 46,592 tokens, Maximum concurrency for 8,192 tokens per request: 5.69x"
    assert figures(node(line)) == {"concurrency": 5.69, "context_tokens": 8192, "pool_tokens": 46592}


def test_below_one_is_too_small_whatever_the_pool_is_said_to_be():
    one = node(SIZE.format("302,945"), CONCURRENCY.format("262,144", "0.47"))
    assert one.judgement.verdict == "too small"
    assert one.judgement.limit_tokens == int(0.47 * 262144)


def test_one_point_zero_may_be_rounded_up():
    assert node(SIZE.format("32,640"), CONCURRENCY.format("32,768", "1.00")).judgement.verdict == "too small"
    assert node(SIZE.format("32,768"), CONCURRENCY.format("32,768", "1.00")).judgement.verdict == "ok"


def test_a_hybrid_whose_size_contradicts_its_concurrency():
    one = node(SIZE.format("190,864"), CONCURRENCY.format("32,768", "21.50"))
    assert figures(one)["pool_tokens"] == int(21.5 * 32768)
    assert "a hybrid model" in one.reading.notes[0]
    assert one.judgement.ratio == 21.5


def test_a_size_that_agrees_with_its_concurrency():
    disabled = "(EngineCore pid=3) WARNING [kv_cache_utils.py:1339] Hybrid KV cache manager is disabled for this hybrid model"
    one = node(disabled, SIZE.format("9,472"), CONCURRENCY.format("128", "74.00"))
    assert (figures(one)["pool_tokens"], one.reading.notes) == (9472, ())


def test_old_blocks_get_their_size_from_the_concurrency():
    one = node(
        "INFO 02-20 00:01:02 kv_cache_utils.py:522] # GPU blocks: 27626",
        "INFO 02-20 00:01:02 kv_cache_utils.py:525] Maximum concurrency for 2048 tokens per request: 215.83x",
    )
    assert figures(one) == {
        "concurrency": 215.83,
        "context_tokens": 2048,
        "pool_tokens": 27626 * 16,
        "page_tokens": 16,
    }


def test_blocks_whose_size_does_not_come_out_are_no_pool():
    one = node("# GPU blocks: 27626, # CPU blocks: 2048", CONCURRENCY.format("2048", "200.00"))
    assert "pool_tokens" not in figures(one)
    assert "pool_tokens" not in figures(node("# GPU blocks: 27626, # CPU blocks: 2048"))


V0_REFUSAL = (
    "ValueError: The model's max seq len (163840) is larger than the maximum number of tokens that can be stored "
    "in KV cache (53040)."
)


@pytest.mark.parametrize("line", [f"[rank0]: {V0_REFUSAL}", f"{V0_REFUSAL} Try increasing something."])
def test_a_start_that_v0_refused(line):
    one = node(line)
    assert figures(one) == {"context_tokens": 163840, "pool_tokens": 53040}
    assert settings(one) == {"refused_to_start": True}
    assert one.judgement.verdict == "too small"


def test_a_start_that_v1_refused():
    one = node(
        "ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (3.52 GiB). Based on the available memory, the "
        "estimated maximum model length is 28816."
    )
    assert figures(one) == {"context_tokens": 32768, "largest_request_tokens": 28816}
    assert settings(one) == {"refused_to_start": True}
    assert (one.judgement.verdict, one.judgement.limit_tokens) == ("too small", 28816)


def test_a_pool_below_the_context_without_a_concurrency():
    one = node("INFO Using max model len 262144", SIZE.format("76,160"))
    assert figures(one) == {"context_tokens": 262144, "pool_tokens": 76160}
    assert one.judgement.verdict == "too small"


def test_ranks_print_their_own_and_the_least_counts():
    ranks = [
        f"(EngineCore_DP{rank} pid=1) {SIZE.format(size)}" for rank, size in enumerate(("53,136", "52,992"))
    ]
    assert figures(node(*ranks)) == {"pool_tokens": 52992}
    assert figures(node(SIZE.format("15,872"), SIZE.format("25,984"))) == {"pool_tokens": 15872}


def test_what_people_wrote_about_figures_is_no_figure():
    one = node("GPU KV Cache Size ~55k tokens (v0.20.0)", "max_model_len 50K: 398K tokens")
    assert (one.reading.engine, figures(one), one.judgement.verdict) == (None, {}, "unknown")


def test_group_aware_metrics():
    one = node(pages={"/metrics": VLLM_METRICS, "/v1/models": models("vllm", max_model_len=8192)})
    assert figures(one) == {
        "advertised_tokens": 8192,
        "context_tokens": 8192,
        "concurrency": 5.6875,
        "pool_tokens": 46592,
        "page_tokens": 16,
    }
    assert settings(one) == {"prefix_hash": "sha256", "prefix_caching": True}
    assert one.judgement.verdict == "ok"


def test_metrics_that_count_blocks_are_not_used():
    one = node(pages={"/metrics": info(block_size="8576", num_gpu_blocks="1000", mamba_block_size="16")})
    assert figures(one) == {"page_tokens": 8576}
    assert (one.judgement.verdict, len(one.reading.notes)) == ("unknown", 1)


def test_the_large_configuration_metric_has_a_page_and_no_pool():
    text = (
        'vllm:vllm_config_info{cache_config__block_size_resolved="True",cache_config_block_size="8576"} 1.0\n'
    )
    one = node(pages={"/metrics": text})
    assert (figures(one), one.judgement.verdict) == ({"page_tokens": 8576}, "unknown")


def test_where_log_and_metrics_contradict_the_smaller_counts():
    metrics = info(kv_cache_max_concurrency="0.47086", kv_cache_size_tokens="123433", block_size="256")
    one = node(SIZE.format("302,945"), CONCURRENCY.format("262,144", "1.16"), pages={"/metrics": metrics})
    assert figures(one)["concurrency"] == pytest.approx(0.47086)
    assert one.judgement.verdict == "too small"
    assert "the smaller is taken" in one.reading.notes[0]


def test_the_least_of_several_engines_counts():
    text = info(engine="0", kv_cache_max_concurrency="3.5") + info(engine="1", kv_cache_max_concurrency="0.9")
    assert figures(node(pages={"/metrics": text}))["concurrency"] == 0.9


def test_versions():
    one = node(pages={"/metrics": VLLM_METRICS, "/version": {"version": "0.32.0"}})
    assert one.reading.version == "0.32.0"
    line = "INFO [core.py:52] Initializing a V1 LLM engine (v0.11.2) with config: model='m', max_seq_len=4096, x=1"
    one = node(line)
    assert (one.reading.version, figures(one)) == ("0.11.2", {"context_tokens": 4096})


TRANSFER = (
    "non-default args: {'kv_transfer_config': KVTransferConfig(kv_connector='NixlConnector', kv_role='kv_producer', "
    "kv_load_failure_policy='recompute', kv_connector_extra_config={'kv_lease_duration': 45})}"
)


def test_the_transfer_of_a_start():
    one = node(TRANSFER)
    assert settings(one) == {
        "kv_connector": "NixlConnector",
        "kv_load_failure_policy": "recompute",
        "kv_role": "kv_producer",
        "kv_lease_duration_s": 45,
    }
    assert one.role == "prefill"


def test_the_same_in_json():
    one = node(
        '--kv-transfer-config {"kv_connector":"NixlConnector","kv_role":"kv_consumer"} vLLM', *VLLM_LOG
    )
    assert (settings(one)["kv_connector"], one.role) == ("NixlConnector", "decode")


def test_the_developers_server_info():
    config = {
        "model_config": {"max_model_len": 8192},
        "kv_transfer_config": {
            "kv_connector": "MooncakeConnector",
            "kv_role": "kv_consumer",
            "kv_load_failure_policy": "fail",
            "kv_connector_extra_config": {"kv_lease_duration": 60},
        },
    }
    one = node(pages={"/server_info": {"vllm_config": config}})
    assert (figures(one), one.role) == ({"context_tokens": 8192}, "decode")
    assert settings(one) == {
        "kv_connector": "MooncakeConnector",
        "kv_load_failure_policy": "fail",
        "kv_role": "kv_consumer",
        "kv_lease_duration_s": 60,
    }
    nothing = node(pages={"/server_info": {"vllm_config": {"kv_transfer_config": None}}})
    assert settings(nothing) == {"kv_connector": "none"}


def test_transfers_that_were_asked_for_without_a_connector():
    one = node(
        "WARNING [core.py:367] Got kv_transfer_params, but no KVConnector found. Disabling KVTransfer."
    )
    assert settings(one) == {"transfer_without_connector": True}


def test_expired_leases_are_counted():
    text = 'vllm:nixl_num_kv_expired_reqs_total{engine="0"} 2.0\nvllm:nixl_num_kv_expired_reqs_total{engine="1"} 1.0\n'
    assert settings(node(pages={"/metrics": text})) == {"kv_expired_requests": 3}


def test_a_log_of_another_context_says_nothing_of_this_one():
    """The log is of an earlier start, with a shorter context."""
    one = node(
        CONCURRENCY.format("4,096", "3.00"),
        pages={"/v1/models": models("vllm", max_model_len=131072)},
    )
    assert ("concurrency" in figures(one), one.judgement.verdict) == (False, "unknown")
    assert "another context" in one.reading.notes[0]


def test_connectors_inside_another_are_said_not_to_be_looked_at():
    one = node("KVTransferConfig(kv_connector='MultiConnector', x=[{'kv_connector': 'NixlConnector'}])")
    assert settings(one)["kv_connector"] == "MultiConnector"
    assert "MultiConnector" in one.reading.notes[0]


def test_a_concurrency_with_a_comma_for_a_point_is_not_a_hundred_times_as_much():
    line = "Maximum concurrency for 1,048,576 tokens per request: 0,65x"
    one = node("INFO Using max model len 1048576", f"INFO {line}")
    assert one.judgement.verdict == "unknown"


def test_counters_that_are_no_numbers_are_absent():
    for value in ("+Inf", "NaN"):
        one = node(saved={"m": f"vllm:nixl_num_kv_expired_reqs_total {value}\n"})
        assert "kv_expired_requests" not in settings(one)


def concurrency(times, context):
    return f"INFO Maximum concurrency for {context:,} tokens per request: {times:.2f}x"


@pytest.mark.parametrize("turn", [1, -1])
def test_a_start_that_counts_for_two_contexts_is_of_two_servers(turn):
    """`kubectl logs -l app=…` without prefixes: neither order makes a pass of it."""
    one = node("vLLM API server version 0.19.0", *(concurrency(9, 8192), concurrency(3, 32768))[::turn])
    assert (one.judgement.verdict, one.judgement.ratio) == ("unknown", 3.0)
    assert one.judgement.why.startswith("more than one server")
    one = node(*(concurrency(9, 8192), concurrency(0.65, 1048576))[::turn])
    assert (one.judgement.verdict, figures(one)["context_tokens"]) == ("too small", 1048576)


@pytest.mark.parametrize("turn", [1, -1])
def test_two_contexts_without_a_concurrency_are_no_pass(turn):
    contexts = ("INFO Using max model len 262144", "INFO Using max model len 32768")[::turn]
    assert node(*contexts, SIZE.format("400,000")).judgement.verdict == "unknown"
    assert node(*contexts, SIZE.format("76,160")).judgement.verdict == "too small"


def test_the_context_of_a_draft_model_is_not_the_served_one():
    lines = ("INFO Using max model len 131072", "INFO Using max model len 4096", concurrency(0.5, 131072))
    one = node(*lines)
    assert (figures(one)["context_tokens"], one.judgement.verdict) == (131072, "too small")
    assert node(*lines[:2], concurrency(2, 131072)).judgement.verdict == "ok"


def test_a_start_that_refused_is_over():
    refused = (
        "To serve at least one request with the models's max seq len (65536), 9 GiB KV cache is needed",
        "the estimated maximum model length is 40960",
    )
    first, last = (f"vLLM API server version {version}" for version in ("0.19.0", "0.19.0"))
    assert node(first, *refused, last, concurrency(1.5, 40960)).judgement.verdict == "ok"
    small = concurrency(0.5, 65536)
    assert node(first, small, last, concurrency(1.5, 40960)).judgement.verdict == "unknown"
    ended = "INFO:     Application shutdown complete."
    assert node(first, small, ended, last, concurrency(1.5, 40960)).judgement.verdict == "ok"
