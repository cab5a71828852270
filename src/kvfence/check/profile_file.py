"""Targets from a TOML file: servers, tenants with their credentials, budgets, and what may be done to them.

Rules it keeps:
- No secret stands in the file: keys are named by their environment variables or by a command that prints
  them.
- Files that it names are looked for beside it. An unknown key is an error with a suggestion and a line.
- Two tenants with credentials are two tenants only where `two_tenants = true` says so.

The form is described in `docs/targets.md`. Nothing here opens a connection or runs a command.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from kvfence.check.asks import TIMEOUT_S, Endpoint
from kvfence.check.budget import Limits, Price
from kvfence.check.credentials import (
    DEFAULT_TTL_S,
    Credential,
    Key,
    NoCredential,
    Redactor,
    Secret,
    TokenCommand,
    from_environment,
    named_header,
)
from kvfence.check.profile_file_fields import (
    Fields,
    ProfileError,
    Reader,
    Source,
    WrongError,
    amount,
    boolean,
    choice,
    choices,
    count,
    text,
    texts,
)
from kvfence.check.scenario import Hazard
from kvfence.check.target import (
    ANONYMOUS,
    AZURE_KEY_HEADER,
    Address,
    Target,
    Tenant,
    address_of,
    allowed_on,
    check_header,
    is_all_here,
    warnings_of,
)
from kvfence.check.tls import ClientCertificate
from kvfence.protocol.errors import OperatorError
from kvfence.report import Place

PROFILE_BYTES_MAX = 1 << 20
TARGETS_MAX = 1_000
_SECRET_WORDS = ("auth", "cookie", "key", "secret", "token")


@dataclass(frozen=True, slots=True)
class Around:
    """What a target is read with, and what its user should hear."""

    environ: Mapping[str, str]
    redactor: Redactor
    folder: Path
    warnings: list[str] = field(default_factory=list)


def read_profile(path: Path, *, environ: Mapping[str, str], redactor: Redactor) -> tuple[Target, ...]:
    """Return the targets of a file. Raises OperatorError, mostly a ProfileError with the line."""
    written = _written(path)
    source = Source(path, written)
    whole = Fields(source, _parsed(path, written), (), "the file")
    tables = whole.tables("target")
    whole.done()
    if not 0 < len(tables) <= TARGETS_MAX:
        raise ProfileError(
            f"a profile has 1 to {TARGETS_MAX:,} tables [[target]]; it has {len(tables)}", whole.place
        )
    targets: dict[str, Target] = {}
    for table in tables:
        target = _target(table, Around(environ, redactor, path.parent))
        if target.name in targets:
            table.fail("name", f"two targets are named {target.name!r}; give each a `name` of its own")
        targets[target.name] = target
    return tuple(targets.values())


def _written(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(PROFILE_BYTES_MAX + 1)
        if len(data) > PROFILE_BYTES_MAX:
            raise OperatorError(f"{path} is larger than {PROFILE_BYTES_MAX:,} bytes, so it is no profile")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise OperatorError(f"the profile {path} cannot be read ({why}); name a TOML file") from error


def _parsed(path: Path, written: str) -> dict[str, object]:
    try:
        return tomllib.loads(written)
    except tomllib.TOMLDecodeError as error:
        words, _, where = str(error).partition(" (at line ")
        line = int(where.split(",")[0]) if where else len(written.splitlines()) or 1
        raise ProfileError(f"this is no TOML: {words}", Place(path=str(path), line=line)) from error


def _target(fields: Fields, around: Around) -> Target:
    address = _address(fields)
    tenants = _tenants(fields, around, address)
    allowed = fields.take("allow", choices(*(hazard.value for hazard in Hazard))) or ()
    endpoint = fields.take("endpoint", choice(*(endpoint.value for endpoint in Endpoint)))
    has_two = fields.take("two_tenants", boolean) or False
    if has_two and len(tenants) < 2:
        fields.fail("two_tenants", "`two_tenants` wants two tables [[target.tenant]]")
    proxy, nodes = _proxy(fields, around), fields.take("nodes", _addresses) or ()
    is_here = is_all_here(address, proxy, nodes)
    target = Target(
        name=fields.take("name", text) or httpx.URL(address.base).host,
        address=address,
        tenants=tenants,
        model=fields.take("model", text),
        answers_as=fields.take("answers_as", text),
        endpoint=None if endpoint is None else Endpoint(endpoint),
        has_two_tenants=has_two,
        is_own_server=fields.take("own_server", boolean) or False,
        allowed=allowed_on([Hazard(name) for name in allowed], is_here=is_here),
        limits=_limits(fields),
        price=_price(fields),
        authority=fields.take("ca_file", _file_beside(around.folder)),
        proxy=proxy,
        nodes=nodes,
        hook=fields.take("hook", texts) or (),
        lease_s=fields.take("lease_s", amount),
        request_timeout_s=fields.take("request_timeout_s", amount) or TIMEOUT_S,
        pin=dict(_headers(fields, "pin", around)),
        warnings=(*warnings_of(address, tenants), *around.warnings),
        place=fields.place,
    )
    fields.done()
    return target


def _address(fields: Fields) -> Address:
    version = fields.take("api_version", text)
    is_exact = fields.take("exact_path", boolean) or False
    return fields.require("url", lambda url: address_of(text(url), api_version=version, is_exact=is_exact))


def _tenants(fields: Fields, around: Around, address: Address) -> tuple[Tenant, ...]:
    tenants: dict[str, Tenant] = {}
    for number, table in enumerate(fields.tables("tenant"), start=1):
        name = table.take("name", text) or f"tenant-{number}"
        if name in tenants:
            table.fail("name", f"two tenants are named {name!r}; give each a `name` of its own")
        tenants[name] = Tenant(
            name=name,
            credential=_credential(table, around, address),
            headers=dict(_headers(table, "headers", around)),
            body=table.take("body", _json_object) or {},
            certificate=_certificate(table, around),
        )
        table.done()
    return tuple(tenants.values()) or (Tenant(name=ANONYMOUS),)


def _credential(table: Fields, around: Around, address: Address) -> Credential:
    default = AZURE_KEY_HEADER if address.is_azure_deployment else "Authorization"
    carrier = table.take("key_header", lambda name: named_header(text(name))) or named_header(default)
    ttl_s = table.take("key_ttl_s", amount)
    argv = table.take("key_command", texts)
    secret = table.take("key_env", lambda name: from_environment(text(name), around.environ))
    if argv is not None and secret is not None:
        table.fail("key_command", "`key_env` and `key_command` both give a key; keep one of them")
    if ttl_s is not None and argv is None:
        table.fail("key_ttl_s", "`key_ttl_s` belongs to a `key_command`")
    if argv is not None:
        return TokenCommand(argv, around.redactor, carrier=carrier, ttl_s=ttl_s or DEFAULT_TTL_S)
    if secret is None:
        return NoCredential()
    around.redactor.learn(secret)
    return Key(secret, carrier)


def _headers(fields: Fields, name: str, around: Around) -> Mapping[str, str]:
    """Read a table of headers: texts, or `{ env = "NAME" }` for what is secret."""

    def read(value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            raise WrongError('a table of headers, such as { x-team = "b" }')
        return {
            header: _header(header, given, around, is_secret=name != "pin" and is_secret_name(header))
            for header, given in value.items()
        }

    return fields.take(name, read) or {}


def _header(header: str, given: object, around: Around, *, is_secret: bool) -> str:
    if isinstance(given, dict) and set(given) == {"env"}:
        secret = from_environment(text(given["env"]), around.environ)
        around.redactor.learn(secret)
        value = secret.reveal()
    elif isinstance(given, str):
        value = given
        if is_secret:
            around.redactor.learn(Secret(given))
            around.warnings.append(
                f"the header {header} seems to hold a secret in the file; "
                'take it from a variable with { env = "NAME" }'
            )
    else:
        raise WrongError(f'texts, or {{ env = "NAME" }} for a secret; {header} is something else')
    check_header(header, value)
    return value


def is_secret_name(header: str) -> bool:
    """Whether a header's name says that its value is secret."""
    return any(word in header.lower() for word in _SECRET_WORDS)


def _certificate(table: Fields, around: Around) -> ClientCertificate | None:
    inner = table.table("certificate")
    if inner is None:
        return None
    beside = _file_beside(around.folder)
    password = inner.take("password_env", lambda name: from_environment(text(name), around.environ))
    if password is not None:
        around.redactor.learn(password)
    found = ClientCertificate(
        certificate=inner.require("file", beside), key=inner.take("key", beside), password=password
    )
    inner.done()
    return found


def _limits(fields: Fields) -> Limits:
    inner = fields.table("budget")
    if inner is None:
        return Limits()
    limits = Limits(
        requests=inner.take("requests", count),
        tokens=inner.take("tokens", count),
        bytes=inner.take("bytes", count),
        seconds=inner.take("seconds", amount),
        money=inner.take("money", amount),
    )
    if limits.money is not None and not fields.has("price"):
        inner.fail("money", "a budget in `money` wants a `price` of the target")
    inner.done()
    return limits


def _price(fields: Fields) -> Price | None:
    inner = fields.table("price")
    if inner is None:
        return None
    price = Price(prompt=inner.require("prompt", amount), completion=inner.require("completion", amount))
    inner.done()
    return price


def _proxy(fields: Fields, around: Around) -> str | None:
    plain = fields.take("proxy", text)
    secret = fields.take("proxy_env", lambda name: from_environment(text(name), around.environ).reveal())
    proxy = plain or secret
    if proxy is None:
        return None
    name = "proxy" if plain else "proxy_env"
    try:
        url = httpx.Proxy(proxy)
    except (httpx.InvalidURL, ValueError):
        fields.fail(name, f"`{name}` must give http://HOST:PORT")
    if url.raw_auth is not None:
        if plain:
            fields.fail(
                name, "`proxy` holds a password; put the whole URL into a variable and use `proxy_env`"
            )
        around.redactor.learn(Secret(url.raw_auth[1].decode()))
    return proxy


def _file_beside(folder: Path) -> Reader[Path]:
    def read(value: object) -> Path:
        path = folder / Path(text(value)).expanduser()
        if not path.is_file():
            raise WrongError(f"the path of a file, from the profile's folder; there is no {path}")
        return path

    return read


def _addresses(value: object) -> tuple[str, ...]:
    return tuple(address_of(url).base for url in texts(value))


def _json_object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise WrongError("a table of fields for the body of each request")
    return value
