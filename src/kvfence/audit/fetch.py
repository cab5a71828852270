"""Asking a running node: a handful of GET requests, bounded in bytes and time, which change nothing.

Rules it keeps:
- Only the paths below are asked for. llama.cpp's `/slots` shows what other people ask: it is not among them.
- Each is asked without a key first, which shows what is open to anyone; with the key only where that was
  refused, and only at the address that was named: a redirect to another host is not followed.
- A key is never in a page, a note or an error, also where a server repeats what it was sent.
- No compression is asked for; the bound on bytes holds for what comes out of one.
"""

import asyncio
import json
import ssl
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from kvfence import __version__
from kvfence.audit.deployment import Access
from kvfence.audit.page import Page, page_of
from kvfence.protocol.errors import OperatorError

PATHS = (
    "/v1/models",
    "/server_info",
    "/get_server_info",
    "/version",
    "/metrics",
    "/props",
    "/info",
    "/api/version",
    "/api/ps",
    "/v2",
    "/v1/capacity",
)
# The older name is asked for only where the newer one is not known.
ONLY_WITHOUT = {"/get_server_info": "/server_info"}
BODY_BYTES_MAX = 16 << 20
REDIRECTS_MAX = 2
PATHS_SECONDS_FACTOR = 6  # all paths of a node together take at most so many times the time-out of one
REFUSALS = (401, 403)
KEY_SHOWN = b"[key]"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one path came to. `status` None: there was no answer, for the reason `failure`."""

    status: int | None
    body: bytes = b""
    failure: str | None = None


@dataclass(slots=True)
class Fetched:
    """What a node answered. `open_paths` gave 200 without a key; `failure`: it could not be asked at all."""

    pages: list[Page] = field(default_factory=list)
    open_paths: list[str] = field(default_factory=list)
    refused_paths: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str | None = None


def make_client(access: Access, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Return a client that trusts what it was told to. Raises OperatorError for a bad CA file or proxy."""
    try:
        return httpx.AsyncClient(
            transport=transport,
            verify=_trust(access.ca_file),
            proxy=None if transport is not None else access.proxy,
            timeout=access.timeout_s,
            headers={"User-Agent": f"kvfence/{__version__} audit", "Accept-Encoding": "identity"},
            follow_redirects=False,
            trust_env=False,
        )
    except (ValueError, ImportError, httpx.InvalidURL):  # ImportError: SOCKS wants a package of its own
        # The address may hold a password: neither it nor what was raised is shown.
        raise OperatorError("the proxy is no address: write it as http://host:port") from None


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise OperatorError(
            f"the CA file {ca_file} cannot be used: {error}; name a file of PEM certificates"
        ) from error


async def fetch_node(client: httpx.AsyncClient, url: str, key: str | None, timeout_s: float) -> Fetched:
    """Ask a node for every path."""
    fetched = Fetched()
    try:
        async with asyncio.timeout(timeout_s * PATHS_SECONDS_FACTOR):
            await _ask_all(client, url, key, fetched)
    except TimeoutError:
        fetched.notes.append(
            f"it took longer than {timeout_s * PATHS_SECONDS_FACTOR:g} s: some paths were not asked for"
        )
        if not fetched.pages:
            fetched.failure = fetched.failure or "it did not answer in time"
    return fetched


async def _ask_all(client: httpx.AsyncClient, url: str, key: str | None, fetched: Fetched) -> None:
    statuses: dict[str, int | None] = {}
    for path in PATHS:
        if path in ONLY_WITHOUT and statuses.get(ONLY_WITHOUT[path]) == httpx.codes.OK:
            continue
        answer = await ask(client, url, path)
        is_open = answer.status == httpx.codes.OK
        if answer.status in REFUSALS and key is not None:
            answer = await ask(client, url, path, key)
        statuses[path] = answer.status
        if answer.status is None and all(status is None for status in statuses.values()):
            fetched.failure = answer.failure
            return
        _keep(fetched, path, answer, is_open=is_open)
    if not fetched.pages:
        seen = ", ".join(sorted({str(status) for status in statuses.values() if status is not None}))
        fetched.notes.append(f"none of the paths that were asked for gave anything (status {seen})")
    refused = len(fetched.refused_paths)
    if refused and not fetched.pages:
        fetched.failure = (
            "it refuses the key that was given" if key is not None else "it wants a key, and none was given"
        )


def _keep(fetched: Fetched, path: str, answer: Answer, *, is_open: bool) -> None:
    if answer.status == httpx.codes.OK:
        page = page_of(path, f"GET {path}", answer.body)
        fetched.pages.append(page)
        # A gateway may answer every path with a page of its own: that tells nothing about a node.
        if is_open and (page.data is not None or page.samples):
            fetched.open_paths.append(path)
    elif answer.status in REFUSALS:
        fetched.refused_paths.append(path)
    if answer.failure is not None:
        fetched.notes.append(f"GET {path}: {answer.failure}")


async def ask(client: httpx.AsyncClient, url: str, path: str, key: str | None = None) -> Answer:
    """GET one path, following redirects only on the same host."""
    address = base_of(url) + path
    for _ in range(REDIRECTS_MAX + 1):
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            async with client.stream("GET", address, headers=headers) as response:
                if not response.is_redirect:
                    return _without(key, await _body_of(response))
                target = urljoin(address, response.headers.get("location", ""))
                stays = _host(target) == _host(address)
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, zlib.error, ValueError) as error:
            return Answer(None, failure=reason_of(error))
        if not stays:
            # Its name is the server's to choose, and may hold the key that it was sent: it is not told.
            why = "it redirects to another host, which was not followed: name that host's address"
            return Answer(None, failure=why)
        address = target
    return Answer(None, failure=f"it redirects more than {REDIRECTS_MAX} times")


async def _body_of(response: httpx.Response) -> Answer:
    body = bytearray()
    inflater = _inflater(response.headers.get("content-encoding", "identity").strip().lower())
    async for chunk in response.aiter_raw():
        # One byte more than allowed is enough to know that there is more.
        left = BODY_BYTES_MAX + 1 - len(body)
        body += chunk if inflater is None else inflater.decompress(chunk, left)
        if len(body) > BODY_BYTES_MAX:
            why = f"it has more than {BODY_BYTES_MAX:,} bytes and was cut there"
            # A number that was cut in the middle is another number: the last line goes.
            whole, _, _ = bytes(body[:BODY_BYTES_MAX]).rpartition(b"\n")
            return Answer(response.status_code, whole, why)
    return Answer(response.status_code, bytes(body))


def _inflater(encoding: str) -> "zlib._Decompress | None":
    """Raises ValueError for what was packed in another way, or twice."""
    if encoding in ("identity", ""):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError("an encoding that was not asked for")
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # its head says which of gzip and zlib it is


def _without(key: str | None, answer: Answer) -> Answer:
    """Some servers repeat the key that they were sent, as it was or as JSON writes it."""
    if key is None:
        return answer
    body = answer.body
    for shown in (key.encode(), json.dumps(key)[1:-1].encode()):
        body = body.replace(shown, KEY_SHOWN)
    return replace(answer, body=body)


def base_of(url: str) -> str:
    """The address below which the paths are: without a trailing slash or `/v1`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1').rstrip('/')}"


def _host(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port


def reason_of(error: Exception) -> str:
    """Why there was no answer, in words that hold nothing that was sent."""
    if isinstance(error, httpx.TimeoutException):
        return "it did not answer in time"
    if isinstance(error, zlib.error):
        return "its compression is broken"
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "its certificate is not trusted: name the CA with --ca-file"
    if isinstance(error, httpx.ConnectError):
        return "TLS failed" if "SSL" in text else "nothing answers at this address"
    if isinstance(error, httpx.ProxyError):
        return "the proxy refused"
    return f"it broke off ({type(error).__name__})"
