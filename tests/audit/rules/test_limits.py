"""KVF102, KVF103: each fires, and is silent where all is well."""

import pytest
from tests.audit.hearing import node
from tests.audit.readers.samples import models
from tests.audit.rules.auditing import said, sglang

from kvfence.audit.rules import advertised_above, limits_differ


def limited(name, tokens, role=None):
    return sglang(name, role, max_req_input_len=tokens, context_length=tokens + 6)


@pytest.mark.parametrize(("prefill", "decode", "severity"), [(1000, 3000, "high"), (3000, 1000, "medium")])
def test_limits_of_a_pair_that_differ(prefill, decode, severity):
    pair = (limited("p", prefill, "prefill"), limited("d", decode, "decode"))
    (one,) = said(limits_differ, *pair, pairs=[pair])
    assert one[:3] == ("KVF102", severity, "p → d")
    assert one[3] == f"prefill serves {prefill:,} tokens, decode {decode:,}: the pair serves 1,000"


def test_limits_that_are_equal_or_not_known():
    same = (limited("p", 1000, "prefill"), limited("d", 1006, "decode"))
    open_ones = (node("nothing", name="p"), limited("d", 1000))
    assert said(limits_differ, *same, *open_ones, pairs=[same, open_ones]) == []


def node_with_models(role, advertised, limit):
    pages = {
        "/server_info": {"max_req_input_len": limit, "disaggregation_mode": role, "context_length": 4096},
        "/v1/models": models("sglang", max_model_len=advertised),
    }
    return node(pages=pages)


@pytest.mark.parametrize(("role", "severity"), [("decode", "high"), (None, "medium")])
def test_more_is_advertised_than_served(role, severity):
    (one,) = said(advertised_above, node_with_models(role, 4096, 1994))
    assert one == ("KVF103", severity, "node", "clients are told 4,096 tokens, and 1,994 can be served")


def test_what_is_advertised_can_be_served_but_for_a_few_tokens():
    assert said(advertised_above, node_with_models(None, 4096, 4090)) == []
    assert said(advertised_above, node(pages={"/v1/models": models("sglang", max_model_len=4096)})) == []


def test_the_router_is_held_against_the_smallest_pair_behind_it():
    router = node(pages={"/v1/models": models("somebody", max_model_len=4096)}, name="r", role="router")
    pair = (limited("p", 1000, "prefill"), limited("d", 3000, "decode"))
    assert said(advertised_above, router, *pair, pairs=[pair])[0][1:] == (
        "high",
        "r",
        "clients are told 4,096 tokens, and 1,000 can be served",
    )
    assert said(advertised_above, router, limited("s", 2000))[0][3].endswith("and 2,000 can be served")
    assert said(advertised_above, router) == []


def test_what_a_model_was_trained_for_is_a_small_thing():
    one = node(
        "llama_context: n_ctx_seq (8192) < n_ctx_train (131072) -- x",
        "llama_kv_cache: size =  224.00 MiB (  8192 cells,  28 layers,  1/1 seqs)",
    )
    assert said(advertised_above, one)[0][:2] == ("KVF103", "low")
