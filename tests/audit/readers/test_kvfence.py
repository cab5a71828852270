"""kvfence: one address speaks for the router and every node."""

from tests.audit.hearing import figures, node, nodes, settings
from tests.audit.readers.samples import KVFENCE_INFO, KVFENCE_METRICS, models


def test_every_node_of_a_deployment_is_read():
    router, prefill, decode = nodes(pages={"/server_info": KVFENCE_INFO})
    assert [one.name for one in (router, prefill, decode)] == ["node", "node/prefill-0", "node/decode-0"]
    assert [one.role for one in (router, prefill, decode)] == ["router", "prefill", "decode"]
    assert figures(prefill) == {
        "pool_tokens": 4096,
        "context_tokens": 2048,
        "largest_request_tokens": 2048,
        "page_tokens": 16,
    }
    assert [one.judgement.verdict for one in (router, prefill, decode)] == ["no pool", "ok", "ok"]


def test_a_role_that_is_declared_for_the_address_is_not_every_nodes():
    router, prefill, _ = nodes(pages={"/server_info": KVFENCE_INFO}, role="router")
    assert (router.role, prefill.role) == ("router", "prefill")


def test_a_node_whose_pool_is_too_small():
    small = [{**KVFENCE_INFO["nodes"][0], "pool_tokens": 1024, "largest_request_tokens": 2048}]
    _, prefill = nodes(pages={"/server_info": {**KVFENCE_INFO, "nodes": small}})
    assert prefill.judgement.verdict == "too small"


def test_what_leaks_by_wish_is_read():
    info = {**KVFENCE_INFO, "fence": "off", "unsafe_faults": ["a/b", "c/d"], "nodes": []}
    assert settings(node(pages={"/server_info": info})) == {"fence": "off", "unsafe_faults": "a/b, c/d"}


def test_metrics_show_the_pools_alone():
    router, decode = nodes(pages={"/metrics": KVFENCE_METRICS})
    assert (decode.name, figures(decode)) == ("node/decode-0", {"pool_tokens": 4096})
    assert decode.judgement.verdict == "unknown"
    assert router.role == "router"


def test_without_server_info_it_is_said_that_the_nodes_were_not_seen():
    one = node(pages={"/v1/models": models("kvfence", max_model_len=2048)})
    assert (one.role, figures(one)) == ("router", {"advertised_tokens": 2048})
    assert "the nodes were not seen" in one.reading.notes[0]


def test_the_banner_shows_the_engine():
    one = node("kvfence 0.1.0  serves m")
    assert (one.reading.engine, one.reading.version) == ("kvfence", "0.1.0")
