"""How a request reaches a server: the interface that everything in `check` asks through, and its HTTP form.

Rules it keeps:
- One ask is one request. Nothing is sent twice, no redirect is followed, and whatever the server or the
  network did is a Reply, never an exception.
- Each tenant has a connection pool of its own: no connection ever carries two tenants.
- Every request says what it is: `User-Agent: kvfence-check/VERSION`, and `X-Kvfence-Run` names the run.
- No cookie is kept: a load balancer's would hold each tenant on a node of its own, where they never meet.
- Nothing of the machine's environment (proxies, .netrc) has a part in it that the target does not name.
"""

import asyncio
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Protocol

import httpx
import msgspec

from kvfence import __version__
from kvfence.check.asks import Ask, Endpoint
from kvfence.check.credentials import Redactor
from kvfence.check.dialect import Dialect, body_of
from kvfence.check.exchange import Bounds, exchange
from kvfence.check.read_reply import Reading
from kvfence.check.reply import Reply
from kvfence.check.target import Address, Target, Tenant, address_of
from kvfence.check.tls import context_of
from kvfence.protocol.errors import invariant

CONNECT_S_MAX = 10.0
# Servers close idle connections after five seconds or more; one that is closed in the moment of its use would
# look like an answer that was cut off.
KEEP_ALIVE_S = 3.0
FETCH_BYTES_MAX = 4 << 20
_DATED = re.compile(r"[-:@](?:\d[\d.:-]*|latest)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the target is spoken to: what the user named, completed by what the probe learned.

    `answers_as` are the names by which the model may call itself; while it is empty, any will do.
    `headers` pin requests to a node.
    """

    model: str | None = None
    endpoint: Endpoint = Endpoint.CHAT
    dialect: Dialect = field(default_factory=Dialect)
    answers_as: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict)


class Client(Protocol):
    """What sends. A wrapper that counts, records or replays has the same methods."""

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants, in the profile's order; there is at least one."""

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        """Send one request and read its answer to the end, or to where the Ask hangs up.

        Cancelling the task closes the connection before CancelledError goes up. Raises OperatorError where
        no credential can be had (a token command that fails).
        """

    async def aclose(self) -> None:
        """Close every connection."""


class ProbingClient(Client, Protocol):
    """What the capability probe works with: it also looks beside the API, and settles how one speaks."""

    @property
    def address(self) -> Address:
        """Where the target is."""

    @property
    def manner(self) -> Manner:
        """How asks are put now."""

    def adopt(self, manner: Manner) -> None:
        """Put all further asks like this."""

    def body_of(self, tenant: str, ask: Ask) -> Mapping[str, object]:
        """Return the body that an ask would have."""

    async def fetch(
        self, tenant: str, url: str, body: object = None, *, timeout_s: float = CONNECT_S_MAX
    ) -> Reply:
        """GET an address, or POST a JSON body to it.

        What is no answer of the API comes back as a failure, with its raw text at the place `error`.
        """


class HttpClient:
    """The Client of a target."""

    def __init__(
        self,
        target: Target,
        *,
        run: str,
        redactor: Redactor,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`run` names the run in each request. `transport` stands in for the network.

        Raises OperatorError for certificates that cannot be used.
        """
        self._target = target
        self._redactor = redactor
        self._own = {"user-agent": f"kvfence-check/{__version__}", "x-kvfence-run": run}
        self._tenants = {tenant.name: tenant for tenant in target.tenants}
        invariant(len(self._tenants) == len(target.tenants), "tenants have different names")
        self._pools = {tenant.name: _pool(target, tenant, transport) for tenant in target.tenants}
        self._manner = Manner(model=target.model, endpoint=target.endpoint or Endpoint.CHAT)

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants, in the profile's order."""
        return tuple(self._tenants)

    @property
    def address(self) -> Address:
        """Where the target is."""
        return self._target.address

    @property
    def manner(self) -> Manner:
        """How asks are put now."""
        return self._manner

    def adopt(self, manner: Manner) -> None:
        """Put all further asks like this."""
        self._manner = manner

    def body_of(self, tenant: str, ask: Ask) -> Mapping[str, object]:
        """Return the body that an ask would have."""
        manner = self._manner
        return body_of(
            ask,
            ask.endpoint or manner.endpoint,
            model=manner.model,
            dialect=manner.dialect,
            extras=self._tenants[tenant].body,
        )

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        """Send one request and read its answer; see Client."""
        manner = self._manner
        bounds = Bounds(
            timeout_s=ask.timeout_s * self._target.patience,
            hang_up_after_s=ask.hang_up_after_s,
            hang_up_after_chunks=ask.hang_up_after_chunks,
        )
        names = manner.answers_as
        reading = Reading(
            is_model=(lambda name: is_named(name, names)) if names else None,
            expects_done=manner.dialect.sends_done,
        )
        url = self._address_of(ask).of(ask.endpoint or manner.endpoint)
        body = msgspec.json.encode(self.body_of(tenant, ask))
        return await self._send(tenant, url, body, ask.extra_headers, bounds, reading)

    async def fetch(
        self, tenant: str, url: str, body: object = None, *, timeout_s: float = CONNECT_S_MAX
    ) -> Reply:
        """GET an address, or POST to it; see ProbingClient."""
        content = None if body is None else msgspec.json.encode(body)
        bounds = Bounds(timeout_s=timeout_s, bytes_max=FETCH_BYTES_MAX)
        return await self._send(tenant, url, content, {}, bounds, Reading())

    async def aclose(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(pool.aclose() for pool in self._pools.values()))

    def _address_of(self, ask: Ask) -> Address:
        """Return where an ask goes. Credentials go to no address that the target does not name."""
        if ask.node is None:
            return self._target.address
        invariant(ask.node in self._target.nodes, "a request goes to a node that the target names")
        return address_of(ask.node, is_exact=True)

    async def _send(
        self,
        tenant: str,
        url: str,
        body: bytes | None,
        more_headers: Mapping[str, str],
        bounds: Bounds,
        reading: Reading,
    ) -> Reply:
        who = self._tenants[tenant]
        headed = await who.credential.headed()
        headers = httpx.Headers({"accept-encoding": "identity", "accept": "*/*"})
        for given in (
            self._target.pin,
            self._manner.headers,
            who.headers,
            headed.headers,
            more_headers,
            self._own,
        ):
            headers.update(given)
        if body is not None:
            headers["content-type"] = "application/json"
        pool = self._pools[tenant]
        request = pool.build_request(
            "GET" if body is None else "POST",
            url,
            params=self._target.address.query or None,
            content=body,
            headers=headers,
        )
        reply = await exchange(pool, request, bounds=bounds, reading=reading, redact=self._redactor.redact)
        if reply.status == 401:
            who.credential.refused(headed.issue)
        return self._clean(reply)

    def _clean(self, reply: Reply) -> Reply:
        """Take keys out of what a server says of failures: some repeat the key that they refuse."""
        redact = self._redactor.redact
        texts = tuple(
            replace(text, text=redact(text.text)) if text.place == "error" else text for text in reply.texts
        )

        def clean(words: str | None) -> str | None:
            return None if words is None else redact(words)

        return replace(
            reply,
            texts=texts,
            message=clean(reply.message),
            error_code=clean(reply.error_code),
            error_param=clean(reply.error_param),
        )


def _pool(target: Target, tenant: Tenant, transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_S)
    timeout = httpx.Timeout(None, connect=CONNECT_S_MAX)
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    if transport is not None:
        return httpx.AsyncClient(transport=transport, timeout=timeout, cookies=cookies, trust_env=False)
    return httpx.AsyncClient(
        cookies=cookies,
        verify=context_of(target.authority, tenant.certificate),
        proxy=target.proxy,
        limits=limits,
        timeout=timeout,
        trust_env=False,
    )


def is_named(name: str, accepted: Collection[str]) -> bool:
    """Whether a model's name is one of those accepted, or a dated version or the path of one."""
    spelt = name.strip().casefold()
    for known in (word.strip().casefold() for word in accepted):
        if spelt == known or spelt.rsplit("/")[-1] == known.rsplit("/")[-1]:
            return True
        if spelt.startswith(known) and _DATED.fullmatch(spelt[len(known) :]):
            return True
    return False
