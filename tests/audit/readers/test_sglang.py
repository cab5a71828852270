"""SGLang: every form of figures that versions 0.3 to 0.5 show, and what misleads in them."""

import pytest
from tests.audit.hearing import figures, node, nodes, settings
from tests.audit.readers.samples import SGLANG_FINAL, SGLANG_INFO, SGLANG_METRICS, models

RANK = "[2026-05-06 09:15:41 DP{0} TP{0} EP{0}]"


def final(tokens, rank="", context=128000):
    return f"[2026-06-29 11:16:45{rank}] max_total_num_tokens={tokens}, chunked_prefill_size=8192, context_len={context}, x=1"


def test_server_info_is_read_with_its_settings():
    one = node(pages={"/server_info": SGLANG_INFO})
    assert figures(one) == {
        "largest_request_tokens": 2042,
        "pool_tokens": 2944,
        "context_tokens": 2048,
        "page_tokens": 16,
    }
    assert settings(one) == {
        "disaggregation_mode": "decode",
        "transfer_backend": "mooncake",
        "kv_checksum": False,
        "kv_canary": "none",
        "auto_truncate": False,
        "dp_size": 2,
    }
    assert (one.reading.version, one.role, one.judgement.verdict) == ("0.5.23", "decode", "ok")
    assert one.reading.figures["largest_request_tokens"].read_from == "GET /server_info max_req_input_len"


def test_the_limit_that_the_engine_enforces_is_believed_first():
    """The pool is large enough by its name; the limit says that prompts above 1,994 are rejected."""
    info = {**SGLANG_INFO, "max_req_input_len": 1994, "max_total_num_tokens": 9000, "internal_states": []}
    one = node(pages={"/server_info": info})
    assert one.judgement.verdict == "too small"
    assert one.judgement.limit_tokens == 1994


@pytest.mark.parametrize("reserve", [6, 7, 8])
def test_the_tokens_that_the_engine_keeps_for_itself_are_no_finding(reserve):
    info = {**SGLANG_INFO, "max_req_input_len": 2048 - reserve}
    assert node(pages={"/server_info": info}).judgement.verdict == "ok"


def test_metrics_give_the_least_rank():
    one = node(pages={"/metrics": SGLANG_METRICS})
    assert figures(one) == {"pool_tokens": 70912, "context_tokens": 65536, "page_tokens": 64}
    assert (one.role, one.judgement.verdict) == ("prefill", "ok")


def test_the_first_form_of_metrics_had_no_engine_type():
    text = 'sglang:max_total_num_tokens{name="m"} 470979.0\nsglang:context_len{name="m"} 131072.0\n'
    one = node(pages={"/metrics": text})
    assert figures(one) == {"pool_tokens": 470979, "context_tokens": 131072}
    assert one.role is None


def test_time_outs_of_deferred_release_are_counted():
    text = (
        'sglang:decode_deferred_kv_release_total{outcome="timeout"} 3.0\n'
        'sglang:decode_deferred_kv_release_total{outcome="drained"} 9.0\n'
    )
    assert settings(node(pages={"/metrics": text})) == {"deferred_release_timeouts": 3}


def test_models_advertise_the_context_and_say_nothing_of_the_pool():
    one = node(pages={"/v1/models": models("sglang", max_model_len=1048576)})
    assert figures(one) == {"advertised_tokens": 1048576, "context_tokens": 1048576}
    assert one.judgement.verdict == "unknown"


def test_a_context_that_nobody_set_follows_from_the_limit_where_the_pool_is_larger():
    info = {**SGLANG_INFO, "context_length": None, "max_req_input_len": 2042}
    one = node(pages={"/server_info": info})
    assert figures(one)["context_tokens"] == 2048
    assert one.judgement.verdict == "ok"


def test_where_the_pool_is_the_limit_the_context_may_be_larger():
    info = {**SGLANG_INFO, "context_length": None, "max_req_input_len": 2938}
    assert "context_tokens" not in figures(node(pages={"/server_info": info}))


OLD_GRPC = {"max_context_length": 314382, "max_req_input_len": 131066, "context_length": None}


def test_the_field_that_was_called_context_and_held_the_pool():
    one = node(saved={"info.json": {**OLD_GRPC, "version": "0.5.3"}})
    assert figures(one) == {
        "largest_request_tokens": 131066,
        "pool_tokens": 314382,
        "context_tokens": 131072,
    }
    assert one.judgement.verdict == "ok"


@pytest.mark.parametrize("version", [None, "0.5.19"])
def test_that_field_is_not_used_where_it_may_mean_the_other(version):
    one = node(saved={"info.json": {**OLD_GRPC, "version": version}})
    assert figures(one) == {"largest_request_tokens": 131066}
    assert one.judgement.verdict == "unknown"
    assert "max_context_length says 314,382" in one.reading.notes[0]


def test_nested_server_args_are_read():
    one = node(saved={"info.json": {"server_args": {**SGLANG_INFO, "max_req_input_len": 2000}}})
    assert figures(one)["largest_request_tokens"] == 2000


# ------------------------------------------------------------ logs
def test_the_final_line():
    one = node(SGLANG_FINAL)
    assert figures(one) == {"pool_tokens": 1086464, "context_tokens": 128000}
    assert one.reading.figures["pool_tokens"].read_from == "node.log:1"
    assert one.place("pool_tokens").line == 1
    assert one.judgement.verdict == "ok"


def test_the_least_of_the_ranks():
    one = node(final(900000, " DP0"), final(800000, " DP1"), final(900000, " DP0"))
    assert (figures(one)["pool_tokens"], one.judgement.verdict) == (800000, "ok")


SEVERAL = "more than one server seems to have written this log"


@pytest.mark.parametrize(
    "lines",
    [
        (final(900000), final(800000)),
        (final(800000), final(900000)),
        (final(900000, " TP0", 65536), final(800000, "", 32768)),
        (final(900000, " DP0"), final(900000, " DP1"), final(800000, " DP0")),
    ],
)
def test_lines_that_one_server_cannot_have_written_are_no_pass(lines):
    """`kubectl logs -l app=…` without prefixes: the last line may be the other server's."""
    one = node(*lines)
    assert (figures(one)["pool_tokens"], one.judgement.verdict) == (800000, "unknown")
    assert one.judgement.why.startswith(SEVERAL)


@pytest.mark.parametrize("turn", [1, -1])
def test_of_several_servers_one_that_says_itself_that_it_is_too_small_is_critical(turn):
    one = node(*(final(681280, context=1048576), final(2040000, context=65536))[::turn])
    assert (figures(one), one.judgement.verdict) == (
        {"pool_tokens": 681280, "context_tokens": 1048576},
        "too small",
    )


def test_the_running_server_knows_better_than_a_log_of_several():
    one = node(final(900000), final(800000), pages={"/server_info": SGLANG_INFO})
    assert one.judgement.verdict == "ok"


def test_data_parallel_pools_are_not_added():
    one = node(*(final(100000, f" DP{rank}", 200000) for rank in range(8)))
    assert (figures(one)["pool_tokens"], one.judgement.verdict) == (100000, "too small")


@pytest.mark.parametrize(
    "line",
    [
        "KV Cache is allocated. #tokens: 367000, K size: 8.23 GB, V size: 8.23 GB",
        "KV Cache is allocated. #tokens: 367000, KV size: 8.23 GB",
        "[2026-01-31 13:50:39 TP1] KV Cache is allocated. dtype: torch.float16, #tokens: 367000, K size: 0.00 GB",
    ],
)
def test_the_line_of_an_allocation(line):
    one = node(line)
    assert figures(one) == {"pool_tokens": 367000}
    assert one.judgement.verdict == "unknown"


def test_pools_of_a_hybrid_are_told_apart_and_no_allocation_is_taken_for_the_pool():
    one = node(
        "[2026-01-31 13:50:39 TP0] Use sliding window memory pool. full_layer_tokens=275360, swa_layer_tokens=200288",
        "[2026-01-31 13:50:39 TP0] KV Cache is allocated. #tokens: 200288, K size: 8.38 GB, V size: 5.59 GB",
        "[2026-01-31 13:50:39 TP0] KV Cache is allocated. #tokens: 275360, K size: 8.38 GB, V size: 5.59 GB",
    )
    assert figures(one) == {"pool_tokens": 275360, "swa_pool_tokens": 200288}


def test_the_draft_models_pool_is_told_apart():
    sizes = (
        "[x TP0] KV Cache is allocated. #tokens: 275328, K size: 8.38 GB, V size: 5.59 GB",
        "[x TP0] KV Cache is allocated. #tokens: 65536, K size: 0.38 GB, V size: 0.59 GB",
        final(275328, " TP0"),
    )
    drafting = "server_args=ServerArgs(speculative_algorithm='EAGLE', x=1)"
    one = node(drafting, *sizes)
    assert figures(one) == {"pool_tokens": 275328, "context_tokens": 128000, "draft_pool_tokens": 65536}
    assert settings(one) == {"speculative": "EAGLE"}
    assert "draft_pool_tokens" not in figures(
        node("server_args=ServerArgs(speculative_algorithm=None)", *sizes)
    )


def test_two_allocations_without_a_final_line_are_not_guessed_at():
    one = node(
        "[x TP0] KV Cache is allocated. #tokens: 200288, K size: 1 GB",
        "[x TP0] KV Cache is allocated. #tokens: 275360, K size: 1 GB",
    )
    assert figures(one) == {}
    assert "several pools" in one.reading.notes[0]


def test_a_prefill_node_whose_sliding_window_pool_is_small_is_unknown():
    hybrid = "[x TP0] Use sliding window memory pool. full_layer_tokens=275360, swa_layer_tokens=100288"
    mode = "server_args=ServerArgs(disaggregation_mode='prefill')"
    assert node(mode, hybrid, final(275360, " TP0")).judgement.verdict == "unknown"
    assert node(hybrid, final(275360, " TP0")).judgement.verdict == "ok"


def test_the_line_of_deepseek_v4():
    line = f"{RANK.format(7)} DSv4 memory calculation: bytes_per_full_token=23749.84, available_bytes=4.13 GB, full_token=176368"
    one = node("server_args=ServerArgs(disaggregation_mode='prefill')", line)
    assert figures(one) == {"pool_tokens": 176368}
    assert any("sliding-window pool" in note for note in one.reading.notes)


def test_figures_as_reports_quote_them():
    one = node(
        "disaggregation_mode=prefill",
        "dp_size=32, page_size=64",
        "context_len=1048576",
        "max_total_num_tokens=284800",
    )
    assert figures(one) == {"pool_tokens": 284800, "context_tokens": 1048576, "page_tokens": 64}
    assert (one.role, one.judgement.verdict) == ("prefill", "too small")


def test_the_flag_is_a_bound_and_not_the_pool():
    one = node("--context-length 262144 --max-total-tokens 262144", "max_total_num_tokens was 130k before")
    assert figures(one) == {"context_tokens": 262144}
    assert (one.reading.engine, one.judgement.verdict) == ("sglang", "unknown")


def test_the_warning_of_recent_versions_gives_both():
    one = node(
        "KV pool holds 40000 tokens, fewer than --context-length 65536. Requests above it are rejected."
    )
    assert figures(one) == {"pool_tokens": 40000, "context_tokens": 65536}
    assert one.judgement.verdict == "too small"


def test_a_rejection_in_the_log_gives_the_limit():
    line = "[x TP5] Input length (16006 tokens) exceeds the maximum allowed length (9994 tokens). Use a shorter input."
    one = node(line, final(10000, " TP5", 16384))
    assert (figures(one)["largest_request_tokens"], one.judgement.verdict) == (9994, "too small")


def test_what_is_effective_is_read_from_the_log_and_not_from_the_flag():
    one = node("max_running_requests is capped to 9 by the mamba state cache (max_mamba_cache_size=47).")
    assert settings(one) == {"max_running_requests": 9}


@pytest.mark.parametrize(
    "line",
    [
        "[x TP0 EP0] Prefill batch, #new-seq: 1, #new-token: 8192, full token usage: 0.01, swa token usage: 0.01",
        "[x TP0] Prefill batch. #new-seq: 1, #new-token: 2266, token usage: 0.00, #running-req: 0",
        "[x TP0] Decode batch. #running-req: 1, #token: 2266, token usage: 0.00",
    ],
)
def test_lines_of_a_running_server_show_the_engine_and_no_figure(line):
    one = node(line)
    assert (one.reading.engine, figures(one), one.judgement.verdict) == ("sglang", {}, "unknown")


ARGS = (
    "server_args=ServerArgs(model_path='m', context_length=65536, page_size=64, disaggregation_mode='{}', "
    "kv_canary='log', disaggregation_enable_kv_checksum=True, allow_auto_truncate=True, "
    "disaggregation_transfer_backend='nixl')"
)


def test_the_arguments_of_a_start():
    one = node(ARGS.format("decode"))
    assert figures(one) == {"context_tokens": 65536, "page_tokens": 64}
    assert settings(one) == {
        "disaggregation_mode": "decode",
        "kv_checksum": True,
        "auto_truncate": True,
        "kv_canary": "log",
        "transfer_backend": "nixl",
    }


def test_of_two_starts_the_last_one_is_judged():
    one = node(ARGS.format("decode"), final(900000), ARGS.format("decode"), final(30000))
    assert figures(one)["pool_tokens"] == 30000
    assert any("2 starts" in note for note in one.reading.notes)


def test_a_start_that_was_too_small_is_over_only_when_the_log_says_so():
    """Two pods' logs one after the other look like a restart: the second one's pool hides nothing."""
    args, small, large = ARGS.format("decode"), final(30000, context=65536), final(900000, context=65536)
    one = node(args, small, args, large)
    assert one.judgement.verdict == "unknown"
    assert one.judgement.why.startswith("an earlier start in this log is too small (30,000 tokens")
    ended = node(args, small, "INFO:     Finished server process [77]", args, large)
    assert (ended.judgement.verdict, figures(ended)["pool_tokens"]) == ("ok", 900000)
    assert node(small, "SIGTERM received. signum=15", args, large).judgement.verdict == "ok"


def test_two_starts_that_overlap_are_two_servers():
    args = ARGS.format("decode")
    one = node(args, args, final(30000, context=20000), final(900000, context=20000))
    assert (figures(one)["pool_tokens"], one.judgement.verdict) == (30000, "unknown")
    same = node(args, args, final(30000, context=20000), final(30000, context=20000))
    assert same.judgement.verdict == "ok"


def test_ports_tell_servers_apart():
    first, second = (f"server_args=ServerArgs(port={port}, nccl_port=9)" for port in (30000, 30001))
    small, large = nodes(first, final(30000, context=65536), second, final(900000, context=65536))
    assert (small.name, small.judgement.verdict) == ("node (30000)", "too small")
    assert (large.name, large.judgement.verdict) == ("node (30001)", "ok")


def test_logs_of_both_roles_in_one_file_are_two_nodes():
    """`cat prefill.log decode.log`: the larger pool of the second hides nothing."""
    prefill, decode = nodes(ARGS.format("prefill"), final(30000), ARGS.format("decode"), final(900000))
    assert (prefill.name, prefill.role, figures(prefill)["pool_tokens"]) == (
        "node (prefill)",
        "prefill",
        30000,
    )
    assert (decode.name, decode.role, figures(decode)["pool_tokens"]) == ("node (decode)", "decode", 900000)


def test_host_memory_adds_nothing():
    one = node(pages={"/server_info": {**SGLANG_INFO, "enable_hierarchical_cache": True}})
    assert figures(one)["pool_tokens"] == 2944
    assert any("HiCache" in note for note in one.reading.notes)


def test_a_context_with_separators_is_not_its_first_digits():
    """Context 1 would make every pool large enough."""
    one = node(final(681280, context="1,048,576"))
    assert (figures(one)["context_tokens"], one.judgement.verdict) == (1048576, "too small")
    one = node(final(681280, context="1.048.576"))
    assert ("context_tokens" in figures(one), one.judgement.verdict) == (False, "unknown")


def test_counters_that_are_no_numbers_are_absent():
    metrics = 'sglang:decode_deferred_kv_release_total{outcome="timeout"} '
    for value in ("+Inf", "NaN"):
        assert settings(node(saved={"m": f"{metrics}{value}\n"})) == {}
