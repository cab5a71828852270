"""What rules work with: pairs and their limits, and findings with the severity of their code."""

from tests.audit.hearing import node
from tests.audit.readers.samples import SGLANG_INFO

from kvfence.audit.findings import Audit, Pair, found, read_where
from kvfence.report import Place, Severity


def sglang(name, limit=2042, **facts):
    return node(pages={"/server_info": {**SGLANG_INFO, "max_req_input_len": limit}}, name=name, **facts)


def test_the_limit_of_a_pair_is_the_smallest_on_its_path():
    pair = Pair(sglang("p", 1500, role="prefill"), sglang("d", role="decode"))
    assert (pair.name, pair.limit_tokens) == ("p → d", 1500)
    assert Pair(sglang("p"), node("nothing", name="d")).limit_tokens is None


def test_who_is_heard_and_who_is_part_of_a_hand_over():
    prefill, alone, gone = (
        sglang("p", role="prefill"),
        sglang("s", role="server"),
        node(name="g", failure="x"),
    )
    router = node("nothing", role="router")
    audit = Audit((prefill, alone, gone, router), (Pair(alone, prefill),))
    assert audit.heard == (prefill, alone, router)
    assert audit.routers == (router,)
    assert audit.is_paired(prefill) and audit.is_paired(alone) and not audit.is_paired(router)


def test_a_finding_has_its_codes_severity_and_the_place_of_what_it_is_about():
    place = Place(path="d.toml", line=3)
    one = sglang("p", place=place)
    assert found("KVF101", one, "x").severity is Severity.CRITICAL
    assert found("KVF101", one, "x", severity=Severity.LOW).severity is Severity.LOW
    assert found("KVF101", one, "x").place == place
    assert found("KVF101", one, "x", place=Place(path="a.log", line=1)).place.path == "a.log"
    pair = Pair(one, one, Place(path="d.toml", line=9))
    assert (found("KVF102", pair, "x").about, found("KVF102", pair, "x").place.line) == ("p → p", 9)


def test_evidence_says_where_it_was_read():
    assert read_where(sglang("p"), "page_tokens", "nothing") == {
        "page_tokens": 16,
        "page_tokens read from": "GET /server_info page_size",
    }
