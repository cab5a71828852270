"""KVF106, KVF107, KVF108, KVF111, KVF113: each fires, and is silent where all is well."""

import pytest
from tests.audit.hearing import node
from tests.audit.readers.samples import KVFENCE_INFO
from tests.audit.rules.auditing import findings, said, sglang, vllm

from kvfence.audit.node import BATCH_INDICES, DEFERRED_RELEASE
from kvfence.audit.rules import (
    deferred_release,
    lease_too_short,
    nothing_connects,
    unbounded_batches,
    unchecked,
)


# ------------------------------------------------------------ deferred release
@pytest.mark.parametrize(
    ("facts", "severity", "what"),
    [
        ({"env": {DEFERRED_RELEASE: "0"}}, "high", f"{DEFERRED_RELEASE} is declared off"),
        (
            {"version": "0.5.20"},
            "high",
            f"deferred release is off by default in 0.5.20, and {DEFERRED_RELEASE} is not declared on",
        ),
        ({"version": "0.5.21"}, "low", "deferred release ends after 30 s, whether or not the writer is done"),
        (
            {"version": "0.5.20", "env": {DEFERRED_RELEASE: "1"}},
            "low",
            "deferred release ends after 30 s, whether or not the writer is done",
        ),
    ],
)
def test_pages_that_come_back_too_early(facts, severity, what):
    assert said(deferred_release, sglang("d", "decode", **facts)) == [("KVF106", severity, "d", what)]


def test_releases_by_time_out_that_were_counted():
    metrics = 'sglang:decode_deferred_kv_release_total{outcome="timeout",engine_type="decode"} 4\n'
    one = node(pages={"/metrics": metrics})
    assert said(deferred_release, one)[0][1:] == (
        "high",
        "node",
        "pages were released by time-out 4 times, whether or not the writer was done",
    )


def test_deferred_release_is_decodes_alone():
    assert said(deferred_release, sglang("p", "prefill"), sglang("s"), vllm("d", "decode")) == []


# ------------------------------------------------------------ batches
def test_batches_without_a_bound():
    (one,) = findings(unbounded_batches, sglang("p", "prefill"))
    assert (one.severity, one.what) == (
        "low",
        f"{BATCH_INDICES} is not declared, and its default is no bound",
    )
    assert "declare it under env" in one.rival
    zero = sglang("p", "prefill", env={BATCH_INDICES: "0"})
    assert said(unbounded_batches, zero) == [
        ("KVF107", "medium", "p", f"{BATCH_INDICES} is 0, which is no bound")
    ]


def test_batches_with_a_bound_and_engines_of_another_transfer():
    silent = (
        sglang("p", "prefill", env={BATCH_INDICES: "256"}),
        sglang("n", "prefill", disaggregation_transfer_backend="nixl"),
        sglang("d", "decode"),
        sglang("s"),
    )
    assert said(unbounded_batches, *silent) == []


# ------------------------------------------------------------ checks
def test_nobody_looks_at_what_arrived():
    one = sglang("d", "decode", kv_canary="none", disaggregation_enable_kv_checksum=False)
    assert said(unchecked, one)[0][:3] == ("KVF108", "medium", "d")


@pytest.mark.parametrize(
    "info",
    [
        {"kv_canary": "log", "disaggregation_enable_kv_checksum": False},
        {"kv_canary": "none", "disaggregation_enable_kv_checksum": True},
        {},
    ],
)
def test_somebody_looks_or_it_is_not_known(info):
    assert said(unchecked, sglang("d", "decode", **info), sglang("s", kv_canary="none")) == []


@pytest.mark.parametrize(("fence", "severity"), [("off", "high"), ("contract", "medium"), ("sealed", None)])
def test_the_level_of_our_own_fence(fence, severity):
    one = node(pages={"/server_info": {**KVFENCE_INFO, "fence": fence, "nodes": []}})
    assert [finding[1] for finding in said(unchecked, one)] == ([] if severity is None else [severity])


# ------------------------------------------------------------ leases
NIXL = "NixlConnector"


def leased(lease, wait, **more):
    pair = (
        vllm("p", "prefill", connector=NIXL, lease=lease, **more),
        vllm("d", "decode", connector=NIXL, wait=wait),
    )
    return said(lease_too_short, *pair, pairs=[pair])


def test_a_lease_that_is_shorter_than_the_wait():
    assert leased(45, 60) == [
        ("KVF111", "high", "p → d", "prefill holds pages for 45 s, decode may wait 60 s")
    ]
    assert leased(None, 60)[0][3] == "prefill holds pages for 30 s, its default, decode may wait 60 s"
    assert leased(45, None) == [
        ("KVF111", "medium", "p → d", "prefill holds pages for 45 s, decode may wait as long as its queue is")
    ]


def test_a_lease_that_outlasts_the_wait_or_another_connector():
    assert leased(45, 20) == []
    pair = (vllm("p", "prefill", connector="MooncakeConnector"), vllm("d", "decode"))
    assert said(lease_too_short, *pair, pairs=[pair]) == []


# ------------------------------------------------------------ connectors
def test_a_transfer_that_was_asked_for_without_a_connector():
    line = "WARNING [core.py:367] Got kv_transfer_params, but no KVConnector found. Disabling KVTransfer."
    (one,) = findings(nothing_connects, node(line))
    assert (one.code, one.place.line) == ("KVF113", 1)


def test_a_pair_whose_settings_have_no_connector():
    one = node(pages={"/server_info": {"vllm_config": {"kv_transfer_config": None}}}, role="prefill")
    assert said(nothing_connects, one)[0][3] == "it is prefill and has no connector"
    alone = node(pages={"/server_info": {"vllm_config": {"kv_transfer_config": None}}})
    assert said(nothing_connects, alone) == []


def counted(computed, received, role="decode"):
    name = "vllm:prompt_tokens_by_source_total"
    text = (
        f'{name}{{source="local_compute"}} {computed}\n{name}{{source="external_kv_transfer"}} {received}\n'
    )
    return node(pages={"/metrics": text}, role=role)


def test_a_decode_node_that_computes_every_prompt_by_itself():
    (one,) = findings(nothing_connects, counted(5000.0, 0.0))
    assert (one.code, one.what) == ("KVF113", "it computed 5,000 prompt tokens by itself and received none")
    assert one.rival == "it was not asked through its prefill node yet"


def test_the_tokens_of_a_health_check_are_no_evidence():
    assert findings(nothing_connects, counted(3.0, 0.0)) == []


def test_a_decode_node_that_receives_or_did_nothing_yet():
    silent = (counted(50.0, 5000.0), counted(0.0, 0.0), counted(5000.0, 0.0, "prefill"), counted("NaN", 0.0))
    assert said(nothing_connects, *silent) == []


def test_a_node_that_is_not_what_it_is_declared_as():
    one = node(pages={"/server_info": {"max_req_input_len": 1, "disaggregation_mode": None}}, role="decode")
    assert said(nothing_connects, one)[0][3] == "it is declared as decode and says that it is server"
    assert said(nothing_connects, sglang("d", "decode"), vllm("p", "prefill", connector=NIXL)) == []
