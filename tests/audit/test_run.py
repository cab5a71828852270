"""One audit from targets to events: the incident's figures, the order, the notes, the pairs."""

import asyncio

import httpx
from tests.audit.readers.samples import KVFENCE_INFO, SGLANG_INFO, models
from tests.audit.serving import Answers, Streaming, over_a_socket
from tests.check.virtual import run

from kvfence.audit import Around, Deployment, NodeSpec, PairSpec, audit
from kvfence.audit.baseline import Baseline, KeptNode
from kvfence.report import FindingMade, NodeRead, Noted, PairRead, RunStarted

CONTEXT, POOL = 1_048_576, 681_280


def info(role, pool, context=CONTEXT, **more):
    limit = min(pool, context) - 6
    states = [{"memory_usage": {"token_capacity": pool}}]
    return {
        **SGLANG_INFO,
        "disaggregation_mode": role,
        "max_total_num_tokens": pool,
        "max_req_input_len": limit,
        "context_length": context,
        "internal_states": states,
        **more,
    }


def hosts(**by_host):
    """A transport over several nodes, each with its answers."""
    transports = {host: Answers(answers).transport() for host, answers in by_host.items()}
    return Streaming(lambda request: transports[request.url.host].handler(request))


def audited(deployment, transport, **facts):
    around = Around({}, None, transport)
    return run(audit(deployment, around, run="r", started="2026-01-01T00:00:00+00:00", **facts))


def of(kind, result):
    return [event for event in result.events if isinstance(event, kind)]


def codes(result):
    return [(made.finding.code, made.finding.about) for made in of(FindingMade, result)]


PAIR = Deployment(
    tuple(NodeSpec(name=role, role=role, url=f"http://{role}") for role in ("router", "prefill", "decode")),
    (PairSpec("prefill", "decode"),),
)


def pair(prefill_pool, *, version="0.5.23", advertised=CONTEXT, **more):
    return hosts(
        router={"/v1/models": models("sglang", max_model_len=advertised)},
        prefill={"/server_info": info("prefill", prefill_pool, version=version, kv_canary="log", **more)},
        decode={"/server_info": info("decode", 2_040_000, version=version, kv_canary="log", **more)},
    )


def test_the_incident():
    result = audited(PAIR, pair(POOL, version="0.5.19"))
    found = [made.finding for made in of(FindingMade, result)]
    assert (found[0].code, found[0].severity, found[0].about) == ("KVF101", "critical", "prefill")
    assert (
        found[0].what == "the pool of 681,280 tokens is smaller than the context of 1,048,576 (64.97% of it)"
    )
    assert ("KVF105", "prefill") in codes(result)
    assert ("KVF102", "prefill → decode") in codes(result)
    assert ("KVF103", "router") in codes(result)
    assert [(event.prefill, event.decode, event.limit_tokens) for event in of(PairRead, result)] == [
        ("prefill", "decode", POOL - 6)
    ]


def test_the_same_deployment_with_a_pool_that_holds_the_context():
    result = audited(PAIR, pair(2_040_000))
    bad = {"KVF101", "KVF102", "KVF103", "KVF104", "KVF105", "KVF108", "KVF113", "KVF119"}
    assert not bad & {code for code, _ in codes(result)}
    assert [event.verdict for event in of(NodeRead, result)] == ["no pool", "ok", "ok"]


def test_events_come_in_their_order_and_findings_worst_first():
    result = audited(PAIR, pair(POOL, version="0.5.19"))
    kinds = [type(event) for event in result.events]
    assert kinds[0] is RunStarted
    order = [RunStarted, NodeRead, PairRead, FindingMade, Noted]
    assert [order.index(kind) for kind in kinds] == sorted(order.index(kind) for kind in kinds)
    ranks = [made.finding.severity.rank for made in of(FindingMade, result)]
    assert ranks == sorted(ranks)
    assert result.events[0].targets == ("router", "prefill", "decode")


def test_without_declared_pairs_every_prefill_meets_every_decode_node():
    nodes = tuple(
        NodeSpec(name=f"{role}{n}", role=role, url=f"http://{role}{n}")
        for role in ("prefill", "decode")
        for n in (0, 1)
    )
    answers = {node.name: {"/server_info": info(node.role, 2_000_000)} for node in nodes}
    result = audited(Deployment(nodes), hosts(**answers))
    assert [(event.prefill, event.decode) for event in of(PairRead, result)] == [
        ("prefill0", "decode0"),
        ("prefill0", "decode1"),
        ("prefill1", "decode0"),
        ("prefill1", "decode1"),
    ]


def test_nodes_of_two_addresses_that_speak_for_several_are_not_mixed():
    nodes = tuple(NodeSpec(name=name, url=f"http://{name}") for name in ("a", "b"))
    answers = {"/server_info": KVFENCE_INFO}
    result = audited(Deployment(nodes), hosts(a=answers, b=answers))
    assert [(event.prefill, event.decode) for event in of(PairRead, result)] == [
        ("a/prefill-0", "a/decode-0"),
        ("b/prefill-0", "b/decode-0"),
    ]


def test_a_pair_of_which_a_node_is_not_there_is_left_out():
    result = audited(
        Deployment((NodeSpec(name="a", url="http://a"),), (PairSpec("a", "b"),)),
        hosts(a={"/server_info": KVFENCE_INFO}),
    )
    assert of(PairRead, result) == []


def test_a_declared_pair_is_found_where_one_address_speaks_for_several():
    declared = Deployment((NodeSpec(name="a", url="http://a"),), (PairSpec("a", "a"),))
    result = audited(declared, hosts(a={"/server_info": KVFENCE_INFO}))
    assert [(event.prefill, event.decode) for event in of(PairRead, result)] == [
        ("a/prefill-0", "a/decode-0")
    ]


def test_half_a_path_is_said_to_be_half():
    one = Deployment((NodeSpec(name="a", role="decode", url="http://a"),))
    result = audited(one, hosts(a={"/server_info": info("decode", 2_040_000)}))
    assert any(
        event.text.startswith("decode nodes were audited and no prefill node") for event in of(Noted, result)
    )
    whole = audited(PAIR, pair(2_040_000))
    assert not any("were audited and no" in event.text for event in of(Noted, whole))


def test_a_node_that_is_not_reached_is_told_and_the_others_are_read():
    def handle(request):
        if request.url.host == "prefill":
            raise httpx.ConnectError("no")
        return Answers({"/server_info": info("decode", 2_040_000)}).transport().handler(request)

    result = audited(PAIR, Streaming(handle))
    assert ("KVF119", "prefill") in codes(result)
    assert {event.node: event.verdict for event in of(NodeRead, result)}["prefill"] == "unreachable"
    assert {event.node: event.verdict for event in of(NodeRead, result)}["decode"] == "ok"


def test_notes_say_what_could_not_be_decided():
    one = Deployment((NodeSpec(name="a", role="prefill", url="http://a"),))
    result = audited(one, hosts(a={"/server_info": info("prefill", 2_040_000, version=None)}))
    (note,) = [event.text for event in of(Noted, result) if "could not be ruled out" in event.text]
    assert note.startswith("a: its version or a setting was not read") and "sglang-rejected-continues" in note


def test_figures_of_another_version_are_not_compared():
    one = Deployment((NodeSpec(name="a", url="http://a"), NodeSpec(name="b", url="http://b")))
    kept = KeptNode(node="a", engine="sglang", engine_version="0.5.20", figures={"pool_tokens": 1})
    answers = {"/server_info": info(None, 2_040_000)}
    result = audited(one, hosts(a=answers, b=answers), baseline=Baseline(nodes=[kept]))
    texts = [event.text for event in of(Noted, result)]
    assert (
        "a: the baseline is of sglang 0.5.20, this is sglang 0.5.23: figures of different versions are not compared"
        in texts
    )
    assert "b: it is not in the baseline, so nothing was compared" in texts
    assert "KVF116" not in dict(codes(result))


def test_over_a_real_socket():
    with over_a_socket(Answers({"/server_info": info("prefill", POOL)})) as url:
        deployment = Deployment((NodeSpec(name="a", url=url),))
        result = asyncio.run(audit(deployment, Around({}), run="r", started=""))
    found = {made.finding.code: made.finding.severity for made in of(FindingMade, result)}
    assert found["KVF101"] == "critical"
    assert found["KVF114"] == "info", "nobody else is on loopback"
