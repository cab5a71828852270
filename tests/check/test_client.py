"""A client sends each ask once, as its tenant, in its target's manner, and says who it is."""

import asyncio
from dataclasses import replace

import httpx
import pytest
from tests.check.scripted_http import KEYS, client_of, delta, events, streamed
from tests.check.virtual import run

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.client import is_named
from kvfence.check.credentials import Redactor, TokenCommand
from kvfence.check.dialect import Dialect
from kvfence.check.reply import Failure
from kvfence.check.target import Tenant
from kvfence.protocol.errors import InvariantError

HELLO = events(delta("Hel"), delta("lo", finish="stop"), "[DONE]")
ASK = Ask(prompt="hi")


def good(_request):
    return streamed(HELLO)


def asked(handler=good, ask=ASK, tenant="a", **settings):
    client, network = client_of(handler, **settings)
    return run(client.ask(tenant, ask)), network


def test_an_ask_is_one_request():
    reply, network = asked()
    assert reply.is_answer
    assert reply.content == "Hello"
    (request,) = network.requests
    assert str(request.url) == "https://example.org/v1/chat/completions"
    assert request.headers["user-agent"].startswith("kvfence-check/")
    assert request.headers["x-kvfence-run"] == "run-1"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["authorization"] == f"Bearer {KEYS['a']}"
    assert network.bodies[0]["messages"] == [{"role": "user", "content": "hi"}]


def test_each_tenant_is_itself():
    async def go():
        client, network = client_of(good)
        assert client.tenants == ("a", "b")
        await asyncio.gather(*(client.ask(name, ASK) for name in client.tenants))
        await client.aclose()
        return [request.headers["authorization"] for request in network.requests]

    assert run(go()) == [f"Bearer {key}" for key in KEYS.values()]


def test_no_two_tenants_share_a_pool():
    client, _ = client_of(good)
    assert len({id(pool) for pool in client._pools.values()}) == 2


def test_headers_and_body_of_tenant_target_and_ask():
    tenant = Tenant(name="a", headers={"x-team": "b", "x-pin": "tenant"}, body={"user": "u", "top_k": 4})
    ask = replace(ASK, extra_headers={"x-request-id": "r"}, extra_body={"top_k": 1})
    _, network = asked(ask=ask, tenants=(tenant,), pin={"x-pin": "target", "x-worker": "1"})
    headers = network.requests[0].headers
    assert [headers[name] for name in ("x-team", "x-pin", "x-worker", "x-request-id")] == [
        "b",
        "tenant",
        "1",
        "r",
    ]
    assert "authorization" not in headers
    assert (network.bodies[0]["user"], network.bodies[0]["top_k"]) == ("u", 1)


def test_an_ask_for_one_node_goes_there_and_nowhere_unnamed():
    nodes = ("https://one.example/v1", "https://two.example/v1")
    _, network = asked(ask=replace(ASK, node=nodes[1]), nodes=nodes)
    assert str(network.requests[0].url) == "https://two.example/v1/chat/completions"
    with pytest.raises(InvariantError):
        asked(ask=replace(ASK, node="https://elsewhere.example/v1"), nodes=nodes)


def test_nobody_can_take_the_runs_name_away():
    _, network = asked(ask=replace(ASK, extra_headers={"X-Kvfence-Run": "other", "User-Agent": "me"}))
    assert network.requests[0].headers.get_list("x-kvfence-run") == ["run-1"]
    assert "kvfence-check" in network.requests[0].headers["user-agent"]


def test_an_azure_deployment():
    url = "https://x.openai.azure.com/openai/deployments/d?api-version=2026-01-01"
    _, network = asked(url=url)
    assert str(network.requests[0].url) == (
        "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2026-01-01"
    )


def test_the_manner_is_kept():
    async def go():
        client, network = client_of(good)
        dialect = Dialect(left_out=frozenset({"temperature"}))
        client.adopt(replace(client.manner, model="n", endpoint=Endpoint.COMPLETIONS, dialect=dialect))
        await client.ask("a", ASK)
        await client.ask("a", replace(ASK, endpoint=Endpoint.CHAT))
        return network

    network = run(go())
    assert [request.url.path for request in network.requests] == ["/v1/completions", "/v1/chat/completions"]
    assert network.bodies[0]["model"] == "n"
    assert "temperature" not in network.bodies[0]


def test_another_model_is_told_once_the_name_is_known():
    async def go():
        client, _ = client_of(good)
        before = await client.ask("a", ASK)
        client.adopt(replace(client.manner, answers_as=frozenset({"big"})))
        return before.failure, (await client.ask("a", ASK)).failure

    assert run(go()) == (None, Failure.OTHER_MODEL)


@pytest.mark.parametrize(
    "name", ["gpt-4o", "GPT-4o", "gpt-4o-2024-08-06", "gpt-4o:latest", "models/gpt-4o", "gpt-4o-0613"]
)
def test_names_of_the_same_model(name):
    assert is_named(name, {"gpt-4o"})


@pytest.mark.parametrize("name", ["gpt-4o-mini", "gpt-4", "gpt-4o-mini-2024-07-18", "llama", ""])
def test_names_of_another_model(name):
    assert not is_named(name, {"gpt-4o"})


def test_a_redirect_is_not_followed():
    def away(_request):
        return httpx.Response(307, headers={"location": "https://elsewhere.org/v1"})

    reply, network = asked(away)
    assert (reply.status, reply.failure) == (307, Failure.REDIRECTED)
    assert len(network.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_nothing_is_sent_twice(status):
    reply, network = asked(lambda _request: httpx.Response(status, headers={"retry-after": "1"}))
    assert reply.status == status
    assert len(network.requests) == 1


def test_a_refused_token_is_replaced_with_the_next_ask_and_never_by_itself():
    async def go():
        async def issue(_argv):
            issued.append(f"token-{len(issued) + 1}")
            return 0, issued[-1].encode()

        def refuse_first(request):
            is_old = request.headers["authorization"].endswith("token-1")
            return httpx.Response(401, json={"error": "bad token-1"}) if is_old else good(request)

        issued = []
        redactor = Redactor()
        tenant = Tenant(name="a", credential=TokenCommand(("mint",), redactor, run=issue))
        client, network = client_of(refuse_first, tenants=(tenant,), redactor=redactor)
        first = await client.ask("a", ASK)
        sent = len(network.requests)
        second = await client.ask("a", ASK)
        return first, sent, second

    first, sent, second = run(go())
    assert (first.status, first.message) == (401, "bad [redacted]")
    assert sent == 1
    assert second.is_answer


def test_a_key_that_the_server_repeats_does_not_come_back():
    key = KEYS["a"]
    answer = {"error": {"message": f"Incorrect API key {key}"}}
    reply, _ = asked(lambda _request: httpx.Response(401, json=answer, headers={"x-echo": key}))
    assert key not in repr(reply)
    assert reply.message == "Incorrect API key [redacted]"
    assert ("x-echo", "[redacted]") in reply.headers


def test_fetch_looks_beside_the_api():
    async def go():
        client, network = client_of(lambda _request: httpx.Response(200, json={"data": [1]}))
        got = await client.fetch("a", "https://example.org/info")
        await client.fetch("a", "https://example.org/tokenize", {"prompt": "x"})
        return got, network

    got, network = run(go())
    assert [request.method for request in network.requests] == ["GET", "POST"]
    assert network.requests[0].headers["authorization"] == f"Bearer {KEYS['a']}"
    assert network.bodies == [{"prompt": "x"}]
    assert [text.text for text in got.texts if text.place == "error"] == ['{"data":[1]}']


def test_the_body_of_an_ask_can_be_seen_beforehand():
    client, _ = client_of(good)
    assert client.body_of("a", ASK)["model"] == "m"


def test_no_cookie_is_kept():
    async def go():
        client, network = client_of(lambda _request: streamed(HELLO, **{"set-cookie": "node=7; Path=/"}))
        await client.ask("a", ASK)
        await client.ask("a", ASK)
        return network.requests

    assert not any("cookie" in request.headers for request in run(go()))
