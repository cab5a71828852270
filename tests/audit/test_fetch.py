"""A running node is asked for a handful of paths, first without a key, within bounds, on its own host alone."""

import asyncio
import gzip
import ssl

import httpx
import pytest
import trustme
from tests.audit.serving import Answers, Streaming, over_a_socket
from tests.check.virtual import run

from kvfence.audit import fetch
from kvfence.audit.deployment import Access
from kvfence.audit.fetch import PATHS, base_of, fetch_node, make_client, reason_of
from kvfence.protocol.errors import OperatorError

URL = "http://node:30000"


def fetched(answers, key=None, url=URL, transport=None):
    async def ask():
        async with make_client(Access(), transport or answers.transport()) as client:
            return await fetch_node(client, url, key, 10.0)

    return run(ask())


def test_every_path_is_asked_for_once_with_get_alone():
    answers = Answers({"/version": {"version": "1"}})
    result = fetched(answers)
    assert answers.paths == list(PATHS)
    assert {method for method, *_ in answers.asked} == {"GET"}
    assert [(page.path, page.data) for page in result.pages] == [("/version", {"version": "1"})]
    assert (result.open_paths, result.failure, result.notes) == (["/version"], None, [])


def test_what_shows_other_peoples_prompts_is_not_asked_for():
    assert "/slots" not in PATHS


def test_the_older_name_is_asked_for_only_without_the_newer():
    answers = Answers({"/server_info": {}})
    fetched(answers)
    assert "/get_server_info" not in answers.paths


def test_the_key_is_sent_only_where_it_is_wanted():
    answers = Answers({"/version": {}, "/metrics": "a 1\n"}, key="s3cret", locked=("/metrics",))
    result = fetched(answers, "s3cret")
    assert [path for _, _, path, key in answers.asked if key is not None] == ["/metrics"]
    assert (result.open_paths, len(result.pages)) == (["/version"], 2)


def test_a_server_that_refuses_is_said_to():
    locked = Answers({}, key="right", locked=PATHS)
    assert fetched(locked).failure == "it wants a key, and none was given"
    assert fetched(locked, "wrong").failure == "it refuses the key that was given"


def test_a_redirect_on_the_same_host_is_followed_and_another_host_never_sees_the_key():
    answers = Answers(
        {
            "/version": (307, "", {"location": "/v"}),
            "/v": {"version": "2"},
            "/metrics": (302, "", {"location": "http://elsewhere/metrics"}),
            "/props": (302, "", {"location": "/props"}),
        }
    )
    result = fetched(answers, "s3cret")
    assert [page.data for page in result.pages] == [{"version": "2"}]
    assert {host for _, host, _, _ in answers.asked} == {"node"}
    assert result.notes == [
        "GET /metrics: it redirects to another host, which was not followed: name that host's address",
        "GET /props: it redirects more than 2 times",
    ]


def test_a_body_is_cut_at_its_bound_and_whole_lines_before_it_are_read(monkeypatch):
    monkeypatch.setattr(fetch, "BODY_BYTES_MAX", 24)
    result = fetched(Answers({"/metrics": "a 1\n" * 5 + "b 22222\nc 3\n"}))
    assert [sample.name for sample in result.pages[0].samples] == ["a"] * 5, "and not the half of b"
    assert result.notes == ["GET /metrics: it has more than 24 bytes and was cut there"]


def test_a_gateways_page_for_every_path_opens_nothing():
    answers = Answers(dict.fromkeys(PATHS, "<!doctype html><title>Welcome</title>"))
    assert fetched(answers).open_paths == []


def failing(error):
    def handle(request):
        raise error

    return Streaming(handle)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (httpx.ConnectError("refused"), "nothing answers at this address"),
        (httpx.ReadTimeout("slow"), "it did not answer in time"),
        (
            httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] x"),
            "its certificate is not trusted: name the CA with --ca-file",
        ),
        (httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER]"), "TLS failed"),
        (httpx.ProxyError("403"), "the proxy refused"),
        (httpx.RemoteProtocolError("gone"), "it broke off (RemoteProtocolError)"),
    ],
)
def test_a_node_that_does_not_answer_is_left_at_once_with_the_reason(error, why):
    assert reason_of(error) == why
    result = fetched(None, transport=failing(error))
    assert (result.failure, result.pages) == (why, [])


def test_one_path_that_breaks_off_does_not_hide_the_others():
    answers = Answers({"/v1/models": {"object": "list", "data": []}})
    whole = answers.transport()

    def handle(request):
        if request.url.path == "/metrics":
            raise httpx.RemoteProtocolError("gone")
        return whole.handler(request)

    result = fetched(answers, transport=Streaming(handle))
    assert (result.failure, len(result.pages)) == (None, 1)
    assert result.notes == ["GET /metrics: it broke off (RemoteProtocolError)"]


def test_a_node_that_drags_on_is_left_after_a_time():
    async def handle(request):
        await asyncio.sleep(30)
        return httpx.Response(404)

    result = fetched(None, transport=Streaming(handle))
    assert result.failure == "it did not answer in time"
    assert "some paths were not asked for" in result.notes[0]


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://a:1/", "http://a:1"),
        ("http://a:1/v1", "http://a:1"),
        ("https://a/llm/v1/?x=1", "https://a/llm"),
        ("http://a", "http://a"),
    ],
)
def test_the_address_below_which_paths_are(url, base):
    assert base_of(url) == base


def test_a_ca_file_that_cannot_be_used_and_a_proxy_that_is_none(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "none.pem"):
        with pytest.raises(OperatorError, match="cannot be used"):
            make_client(Access(ca_file=path))
    with pytest.raises(OperatorError, match="is no address"):
        make_client(Access(proxy="nonsense"))


def test_over_a_real_socket():
    answers = Answers({"/version": {"version": "3"}, "/metrics": "a 1\n"}, key="k", locked=("/metrics",))

    async def ask(url):
        async with make_client(Access()) as client:
            return await fetch_node(client, url, "k", 10.0)

    with over_a_socket(answers) as url:
        result = asyncio.run(ask(f"{url}/v1"))
    assert [page.path for page in result.pages] == ["/version", "/metrics"]
    assert result.open_paths == ["/version"]
    gone = asyncio.run(ask(url))
    assert gone.failure == "nothing answers at this address"


def test_a_private_authority_is_trusted_when_it_is_named(tmp_path):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    async def ask(url, ca_file):
        async with make_client(Access(ca_file=ca_file)) as client:
            return await fetch_node(client, url, None, 10.0)

    with over_a_socket(Answers({"/version": {"version": "3"}}), context) as url:
        trusted = asyncio.run(ask(url, tmp_path / "ca.pem"))
        refused = asyncio.run(ask(url, None))
    assert [page.data for page in trusted.pages] == [{"version": "3"}]
    assert refused.failure == "its certificate is not trusted: name the CA with --ca-file"


def answering(respond):
    """Fetch from a server that answers each request so."""
    return fetched(None, "s3cret-key", transport=Streaming(respond))


@pytest.mark.parametrize("to", ["http://node:99999/x", "http://[zz/x", "//"])
def test_a_redirect_to_no_address_is_no_answer(to):
    result = answering(lambda _: httpx.Response(302, headers={"location": to}))
    assert result.failure is not None


def test_a_key_that_a_server_repeats_is_in_no_page():
    def respond(request):
        key = request.headers.get("authorization")
        return httpx.Response(401) if key is None else httpx.Response(200, json={"version": key})

    pages = answering(respond).pages
    assert len(pages) == len(PATHS) - 1
    assert {page.data["version"] for page in pages} == {"Bearer [key]"}


def test_what_is_packed_is_read_within_the_bound(monkeypatch):
    def packed(body):
        stream = gzip.compress(body)
        return lambda _: httpx.Response(
            200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(stream)
        )

    assert answering(packed(b'{"a": 1}')).pages[0].data == {"a": 1}
    monkeypatch.setattr(fetch, "BODY_BYTES_MAX", 1_000)
    result = answering(packed(b"a 1\n" * 1_000_000))
    assert len(result.pages[0].samples) == 250
    assert any("was cut there" in note for note in result.notes)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br"])
def test_what_is_packed_otherwise_is_not_read(encoding):
    result = answering(
        lambda _: httpx.Response(
            200, headers={"content-encoding": encoding}, stream=httpx.ByteStream(b"\x1f\x8b")
        )
    )
    assert (result.failure, result.pages) == ("it broke off (ValueError)", [])


def test_broken_compression_is_said():
    headers = {"content-encoding": "gzip"}
    result = answering(lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"junk")))
    assert result.failure == "its compression is broken"


def test_a_server_that_knows_none_of_the_paths_is_said_to():
    result = answering(lambda _: httpx.Response(404))
    assert (result.failure, result.notes) == (
        None,
        ["none of the paths that were asked for gave anything (status 404)"],
    )


def test_a_proxys_password_is_not_repeated():
    with pytest.raises(OperatorError) as raised:
        make_client(Access(proxy="http://me:s3cret@proxy:port"))
    assert "s3cret" not in str(raised.value)


def test_a_socks_proxy_without_its_package_is_no_traceback():
    with pytest.raises(OperatorError):
        make_client(Access(proxy="socks9://proxy:1"))
