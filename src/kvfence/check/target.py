"""What is checked, and as whom: a server's address, its model and endpoint, and its tenants.

Rules it keeps:
- A base URL may end in `/v1` or not, in one of the two endpoints, or be an Azure deployment. Nothing secret
  may stand in it.
- Two credentials are two tenants only where somebody says so; a control of the probe may still show it.
- A target is data: nothing here opens a connection.
"""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from kvfence.check.asks import TIMEOUT_S, Endpoint
from kvfence.check.budget import Limits, Price
from kvfence.check.credentials import (
    Credential,
    Key,
    NoCredential,
    Redactor,
    from_environment,
    named_header,
)
from kvfence.check.scenario import Hazard
from kvfence.check.tls import ClientCertificate
from kvfence.protocol.errors import OperatorError
from kvfence.report import Place

URL_CHARS_MAX = 2_048
ANONYMOUS = "anonymous"
AZURE_KEY_HEADER = "api-key"
_VERSIONED = re.compile(r"/v\d+[a-z0-9]*$")
_AZURE_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+$")
_ENDPOINT_PATHS = ("/chat/completions", "/completions", "/models")
# What no header of the user's may be: they frame the request, or name the run.
_OUR_HEADERS = {"content-length", "transfer-encoding", "connection", "host", "user-agent", "x-kvfence-run"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where requests go. `root` is the server without its version, for what stands beside the API."""

    base: str
    query: tuple[tuple[str, str], ...] = ()

    @property
    def root(self) -> str:
        """The address without `/v1`."""
        return _VERSIONED.sub("", self.base)

    @property
    def is_azure_deployment(self) -> bool:
        """Whether the path names the deployment, and with it the model."""
        return bool(_AZURE_DEPLOYMENT.search(self.base))

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        return is_loopback(httpx.URL(self.base).host)

    @property
    def is_plain(self) -> bool:
        """Whether everybody on the way can read along."""
        return httpx.URL(self.base).scheme == "http"

    def of(self, endpoint: Endpoint) -> str:
        """Return the URL of an endpoint, without the query."""
        return self.base + ("/chat/completions" if endpoint is Endpoint.CHAT else "/completions")

    @property
    def models(self) -> str:
        """Return the URL that lists the models."""
        if self.is_azure_deployment:
            return self.base.split("/openai/deployments/")[0] + "/openai/models"
        return f"{self.base}/models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Somebody as whom requests are sent. `headers` may hold secrets, which the Redactor knows."""

    name: str
    credential: Credential = field(default_factory=NoCredential, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, object] = field(default_factory=dict)
    certificate: ClientCertificate | None = None

    @property
    def is_anonymous(self) -> bool:
        """Whether nothing says who it is."""
        return isinstance(self.credential, NoCredential) and self.certificate is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server, model and endpoint to check.

    `nodes` are addresses of workers that can be asked directly, prefill before decode; `hook` is a command of
    the user's that breaks a path of the server and mends it; `lease_s` is how long its prefill keeps a
    hand-off, where the user knows; `request_timeout_s` is how long an ordinary request may take; `place` is
    where the profile names it.
    """

    name: str
    address: Address
    tenants: tuple[Tenant, ...]
    model: str | None = None
    answers_as: str | None = None  # another name by which the model may answer
    endpoint: Endpoint | None = None
    has_two_tenants: bool = False
    is_own_server: bool = False
    allowed: frozenset[Hazard] = frozenset({Hazard.ORDINARY})
    limits: Limits = field(default_factory=Limits)
    price: Price | None = None
    authority: Path | None = None
    proxy: str | None = field(default=None, repr=False)
    nodes: tuple[str, ...] = ()
    hook: tuple[str, ...] = ()
    lease_s: float | None = None
    request_timeout_s: float = TIMEOUT_S
    pin: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    place: Place | None = None

    @property
    def is_here(self) -> bool:
        """Whether everything that is asked is on this machine: the server, its proxy and its workers."""
        return is_all_here(self.address, self.proxy, self.nodes)

    @property
    def tenant_names(self) -> tuple[str, ...]:
        """Names of the tenants, in order."""
        return tuple(tenant.name for tenant in self.tenants)

    @property
    def patience(self) -> float:
        """How many times longer than usual everything is waited for here."""
        return self.request_timeout_s / TIMEOUT_S

    @property
    def shown(self) -> str:
        """The address as a report names it: without its query."""
        return self.address.base


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address_of(url: str, *, api_version: str | None = None, is_exact: bool = False) -> Address:
    """Read a base URL. `is_exact` leaves its path as it is. Raises OperatorError that quotes no secret."""
    found = _parsed(url)
    path = found.path.rstrip("/")
    for ending in _ENDPOINT_PATHS:
        if path.endswith(ending):
            path = path.removesuffix(ending).rstrip("/")
            break
    is_azure = bool(_AZURE_DEPLOYMENT.search(path))
    if not (is_exact or is_azure or _VERSIONED.search(path)):
        path += "/v1"
    version = api_version or found.params.get("api-version")
    if is_azure and version is None:
        raise OperatorError(
            f"{found.host} is an Azure deployment, whose URL needs an `api-version`; add ?api-version=… to "
            "the URL, or `api_version` to the profile"
        )
    query = () if version is None else (("api-version", version),)
    return Address(base=f"{found.scheme}://{found.netloc.decode()}{path}", query=query)


def _parsed(url: str) -> httpx.URL:
    wanted = "it wants http:// or https://, a host, and a path such as /v1"
    if not url.startswith(("http://", "https://")) or len(url) > URL_CHARS_MAX:
        raise OperatorError(f"the URL of the target cannot be used: {wanted}")
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise OperatorError(f"the URL of the target cannot be used: {wanted}") from error
    if found.userinfo:
        raise OperatorError(
            f"the URL of {found.host} holds a user name or password, which would stand in reports; take it "
            "out and name the credential by its environment variable (--key-env, or the profile)"
        )
    if set(found.params) - {"api-version"} or (found.query and not found.params):
        raise OperatorError(
            f"the URL of {found.host} holds a query, which may be a key and would stand in logs; take it "
            "out: a key goes into an environment variable (--key-env), what else a gateway wants into "
            "`headers` of the profile (Azure's `api-version` may stay)"
        )
    if not found.host or found.fragment or not 0 < (found.port or 1) < 65_536:
        raise OperatorError(f"the URL of the target cannot be used: {wanted}, and nothing after a #")
    return found


def warnings_of(address: Address, tenants: Sequence[Tenant]) -> tuple[str, ...]:
    """Return what the user should hear about how the target is reached."""
    if address.is_plain and not address.is_loopback and any(not tenant.is_anonymous for tenant in tenants):
        host = httpx.URL(address.base).host
        return (f"the key travels to {host} over plain http, where everybody on the way can read it",)
    return ()


def check_header(name: str, value: str) -> None:
    """Raise OperatorError unless a header of the user's can be sent. The value is not quoted."""
    named_header(name)
    if name.lower() in _OUR_HEADERS:
        raise OperatorError(f"the header {name} is kvfence's own to set; take it out of `headers`")
    if not value.isascii() or not value.isprintable() or value != value.strip():
        raise OperatorError(
            f"the header {name} has a value that cannot be sent: use visible ASCII characters"
        )


def simple_target(
    url: str,
    *,
    key_names: Sequence[str],
    environ: Mapping[str, str],
    redactor: Redactor,
    model: str | None = None,
    has_two_tenants: bool = False,
    api_version: str | None = None,
) -> Target:
    """Return the target of the command line's short form: a URL, and keys by their variables' names.

    The tenants are named by their variables. Without a key there is one, `anonymous`.
    """
    address = address_of(url, api_version=api_version)
    if len(set(key_names)) < len(key_names):
        raise OperatorError("the same variable is named twice; two tenants have two keys (--key-env)")
    if has_two_tenants and len(key_names) < 2:
        raise OperatorError("--two-tenants wants two keys: name a second variable with --key-env")
    tenants = []
    for name in key_names:
        secret = from_environment(name, environ)
        redactor.learn(secret)
        carrier = named_header(AZURE_KEY_HEADER if address.is_azure_deployment else "Authorization")
        tenants.append(Tenant(name=name, credential=Key(secret, carrier)))
    if not tenants:
        tenants.append(Tenant(name=ANONYMOUS))
    return Target(
        name=httpx.URL(address.base).host,
        address=address,
        tenants=tuple(tenants),
        model=model,
        has_two_tenants=has_two_tenants,
        allowed=allowed_on((), is_here=address.is_loopback),
        warnings=warnings_of(address, tenants),
    )


def allowed_on(named: Sequence[Hazard], *, is_here: bool) -> frozenset[Hazard]:
    """Return which hazards may run: the ordinary and the named ones; on this machine, all."""
    return frozenset(Hazard) if is_here else frozenset({Hazard.ORDINARY, *named})


def is_all_here(address: Address, proxy: str | None, nodes: Sequence[str]) -> bool:
    """Whether everything that is asked is on this machine.

    A proxy elsewhere has a loopback of its own, and workers that are asked directly may be anybody's.
    """
    others = (*([] if proxy is None else [proxy]), *nodes)
    return address.is_loopback and all(is_loopback(httpx.URL(one).host) for one in others)
