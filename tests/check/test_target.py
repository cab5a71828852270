"""Addresses in all their spellings, tenants by their variables, and what the user is warned of."""

import dataclasses

import pytest
from tests.check.virtual import run

from kvfence.check.asks import Endpoint
from kvfence.check.credentials import Redactor
from kvfence.check.scenario import Hazard
from kvfence.check.target import address_of, check_header, is_all_here, is_loopback, simple_target
from kvfence.protocol.errors import OperatorError

ENVIRON = {"KEY_A": "key-of-tenant-a", "KEY_B": "key-of-tenant-b"}


def simple(url="http://127.0.0.1:8000", *names, **settings):
    return simple_target(url, key_names=names, environ=ENVIRON, redactor=Redactor(), **settings)


@pytest.mark.parametrize(
    ("url", "chat"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1/chat/completions"),
        ("http://localhost:8000/", "http://localhost:8000/v1/chat/completions"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1/chat/completions"),
        ("https://h/api/v1/", "https://h/api/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/v1/completions", "https://h/v1/chat/completions"),
        ("https://h/gateway", "https://h/gateway/v1/chat/completions"),
        ("https://h/v1beta", "https://h/v1beta/chat/completions"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1/chat/completions"),
    ],
)
def test_a_base_url_may_be_spelt_in_many_ways(url, chat):
    address = address_of(url)
    assert address.of(Endpoint.CHAT) == chat
    assert address.of(Endpoint.COMPLETIONS) == chat.replace("/chat/", "/")
    assert address.query == ()


def test_beside_the_api():
    address = address_of("https://h/x/v1")
    assert address.models == "https://h/x/v1/models"
    assert address.root == "https://h/x"
    assert address_of("https://h/x", is_exact=True).base == "https://h/x"


def test_an_azure_deployment_names_its_version():
    url = "https://me.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2026-01-01"
    address = address_of(url)
    assert address.is_azure_deployment
    assert address.of(Endpoint.CHAT) == "https://me.openai.azure.com/openai/deployments/gpt/chat/completions"
    assert address.query == (("api-version", "2026-01-01"),)
    assert address.models == "https://me.openai.azure.com/openai/models"
    assert address_of(url, api_version="2026-10-10").query == (("api-version", "2026-10-10"),)
    with pytest.raises(OperatorError, match="needs an `api-version`"):
        address_of("https://me.openai.azure.com/openai/deployments/gpt")


def test_an_azure_key_has_its_own_header():
    url = "https://me.openai.azure.com/openai/deployments/gpt?api-version=2026-01-01"
    assert run(simple(url, "KEY_A").tenants[0].credential.headed()).headers == {"api-key": "key-of-tenant-a"}


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://h/v1", "http://", "http://h/v1#x", "http://h:99999999/", ""]
)
def test_what_is_no_url_is_refused(url):
    with pytest.raises(OperatorError, match="cannot be used: it wants http"):
        address_of(url)


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(OperatorError, match="user name or password") as caught:
        address_of("https://me:hunter22@h/v1")
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("query", ["code=abcdef123", "api-version=1&api_key=abcdef123", "abcdef123"])
def test_a_query_is_refused_and_not_repeated(query):
    """Some gateways take keys there; logs of every proxy on the way hold it."""
    with pytest.raises(OperatorError, match="holds a query, which may be a key") as caught:
        address_of(f"https://h/v1?{query}")
    assert "abcdef123" not in str(caught.value)


def test_the_version_of_an_api_may_stand_in_the_query():
    assert address_of("https://h/v1?api-version=2026-01-01").query == (("api-version", "2026-01-01"),)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_this_machine_is_known(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["example.org", "10.0.0.1", "a.localhost", "localhost.example.org", "::2"])
def test_another_machine_is_known(host):
    assert not is_loopback(host)


def test_everything_is_allowed_on_this_machine_alone():
    assert simple().allowed == frozenset(Hazard)
    assert simple("https://example.org").allowed == {Hazard.ORDINARY}


def test_tenants_are_named_by_their_variables():
    target = simple("https://h", "KEY_A", "KEY_B")
    assert target.tenant_names == ("KEY_A", "KEY_B")
    assert not target.has_two_tenants, "two keys are two tenants only if somebody says so"
    assert simple("https://h", "KEY_A", "KEY_B", has_two_tenants=True).has_two_tenants
    assert simple().tenant_names == ("anonymous",)
    assert "key-of" not in repr(target)


def test_two_tenants_want_two_keys():
    with pytest.raises(OperatorError, match="--two-tenants wants two keys"):
        simple("https://h", "KEY_A", has_two_tenants=True)
    with pytest.raises(OperatorError, match="named twice"):
        simple("https://h", "KEY_A", "KEY_A")


def test_plain_http_to_another_machine_is_warned_of():
    (warning,) = simple("http://example.org", "KEY_A").warnings
    assert "over plain http" in warning
    assert simple("http://127.0.0.1:8000", "KEY_A").warnings == ()
    assert simple("https://example.org", "KEY_A").warnings == ()
    assert simple("http://example.org").warnings == (), "without a key nothing is given away"


@pytest.mark.parametrize(
    ("name", "value"), [("a b", "x"), ("Host", "x"), ("x-a", "a\nb"), ("x-a", "ü"), ("x-a", " x")]
)
def test_a_header_that_cannot_be_sent_is_refused(name, value):
    check_header("x-team", "b")
    with pytest.raises(OperatorError, match="header"):
        check_header(name, value)


@pytest.mark.parametrize(
    ("base", "proxy", "nodes", "is_here"),
    [
        ("http://127.0.0.1:9", None, (), True),
        ("http://localhost:9", "http://[::1]:3128", ("http://127.0.0.1:8001",), True),
        ("http://127.0.0.1:9", "http://198.51.100.7:3128", (), False),
        ("http://127.0.0.1:9", None, ("http://127.0.0.1:8001", "http://prefill-1:8000"), False),
        ("http://evil.localhost:9", None, (), False),
        ("http://127.0.0.1.example.com:9", None, (), False),
    ],
)
def test_this_machine_is_the_server_its_proxy_and_its_workers(base, proxy, nodes, is_here):
    assert is_all_here(address_of(base), proxy, nodes) is is_here
    target = dataclasses.replace(simple(base), proxy=proxy, nodes=nodes)
    assert target.is_here is is_here
