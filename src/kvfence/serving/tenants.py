"""Who is asking: API keys to tenants.

Rules it keeps:
- A key is never stored or logged; keys are compared as SHA-256, in constant time, against every entry.
- With a keys file, a missing or unknown key is 401. The file is read again when it changes; a new file that
  is bad changes nothing and is logged once.
- Without a file each bearer token is a tenant of its own, named by a keyed hash (its key is drawn at start,
  so that a name in a log cannot be guessed back), and no token is the tenant `anonymous`.
- Prefix pages are shared within a domain: by default the tenant's own (law 8).
"""

import difflib
import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from kvfence.protocol.errors import OperatorError
from kvfence.serving.errors import ApiError, invalid_key

ANONYMOUS = "anonymous"
KEYS_FILE_BYTES_MAX = 1 << 20
KEYS_MAX = 10_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}")
SHA256_HEX = re.compile(r"[0-9a-f]{64}")
_ENTRY_KEYS = ("tenant", "sha256", "domain", "admin")
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, who shares prefix pages with them, and whether they may read the server's own state."""

    tenant: str
    domain: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    digest: bytes
    principal: Principal


# No tenant of a keys file can have a name with parentheses.
_ADMIN = Principal("(admin)", "(admin)", admin=True)


class Tenants:
    """Turns an Authorization header into a Principal."""

    def __init__(
        self,
        *,
        keys_file: Path | None = None,
        admin_key: str | None = None,
        salt: bytes | None = None,
    ) -> None:
        """Read `keys_file`; raises OperatorError when it is bad. `admin_key` opens the server's own state."""
        self._file = keys_file
        self._salt = secrets.token_bytes(32) if salt is None else salt
        self._admin = None if admin_key is None else _digest(admin_key)
        self._entries: tuple[_Entry, ...] = ()
        self._stamp: tuple[int, ...] | None = None
        if keys_file is not None:
            self._stamp = _stamp(keys_file)
            self._entries = read_keys(keys_file)

    def identify(self, authorizations: list[str]) -> Principal:
        """Return who sent these Authorization headers. Raises ApiError (401)."""
        token = _bearer(authorizations)
        if token is not None and self._admin is not None and hmac.compare_digest(_digest(token), self._admin):
            return _ADMIN
        if self._file is None:
            return self._open_principal(token)
        if token is None:
            raise invalid_key("This server needs an API key, and the request has none.")
        self._reload(self._file)
        principal = _find(self._entries, _digest(token))
        if principal is None:
            raise invalid_key("The API key is not known to this server.")
        return principal

    def _open_principal(self, token: str | None) -> Principal:
        if token is None:
            return Principal(ANONYMOUS, ANONYMOUS)
        name = "key-" + hashlib.blake2b(token.encode(), key=self._salt, digest_size=16).hexdigest()
        return Principal(name, name)

    def _reload(self, file: Path) -> None:
        stamp = _stamp(file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._entries = read_keys(file)
        except OperatorError as error:
            log.warning("keys file kept", file=str(file), why=str(error))
            return
        log.info("keys file read", file=str(file), keys=len(self._entries))


def require_admin(principal: Principal) -> None:
    """Raise ApiError (403) for everybody but an admin."""
    if not principal.admin:
        raise ApiError(
            403,
            "The server listens beyond this machine, so its own state needs the admin key "
            "(`admin = true` in the keys file, or the admin key file).",
            code="admin_key_required",
        )


def read_keys(file: Path) -> tuple[_Entry, ...]:
    """Read a keys file. Raises OperatorError that says which entry is wrong, and never quotes a key."""
    try:
        if file.stat().st_size > KEYS_FILE_BYTES_MAX:
            raise OperatorError(f"{file} is larger than {KEYS_FILE_BYTES_MAX} bytes; is it the keys file?")
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OperatorError(f"the keys file {file} cannot be read: {error}") from error
    _check_names(content, ("key",), f"{file}")
    listed = content.get("key", [])
    if not isinstance(listed, list) or not 1 <= len(listed) <= KEYS_MAX:
        raise OperatorError(f"{file} must have 1 to {KEYS_MAX} `[[key]]` tables")
    entries = tuple(_read_entry(entry, f"{file}, key {number}") for number, entry in enumerate(listed, 1))
    if len({entry.digest for entry in entries}) != len(entries):
        raise OperatorError(f"{file} has the same sha256 twice; a key belongs to one tenant")
    return entries


def _read_entry(entry: object, where: str) -> _Entry:
    if not isinstance(entry, dict):
        raise OperatorError(f"{where} is no table; write `[[key]]`")
    _check_names(entry, _ENTRY_KEYS, where)
    digest, tenant = entry.get("sha256"), entry.get("tenant")
    domain, admin = entry.get("domain", tenant), entry.get("admin", False)
    if not isinstance(digest, str) or not SHA256_HEX.fullmatch(digest.lower()):
        raise OperatorError(f"{where}: `sha256` must be the key's SHA-256 as 64 hexadecimal digits")
    for name, value in (("tenant", tenant), ("domain", domain)):
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise OperatorError(f"{where}: `{name}` must be 1 to 64 letters, digits or any of `._@:-`")
    if not isinstance(admin, bool):
        raise OperatorError(f"{where}: `admin` must be true or false")
    return _Entry(bytes.fromhex(digest), Principal(str(tenant), str(domain), admin))


def _check_names(found: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else f" Known are {', '.join(known)}."
            raise OperatorError(f"{where}: unknown key `{name[:64]}`.{hint}")


def _find(entries: tuple[_Entry, ...], digest: bytes) -> Principal | None:
    # Every entry is compared, so that time says nothing about which one it was.
    found = None
    for entry in entries:
        if hmac.compare_digest(entry.digest, digest):
            found = entry.principal
    return found


def _bearer(authorizations: list[str]) -> str | None:
    if not authorizations:
        return None
    if len(authorizations) > 1:
        raise invalid_key("The request has more than one Authorization header.")
    scheme, _, token = authorizations[0].partition(" ")
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token.strip()):
        raise invalid_key("The Authorization header is not of the form that this server knows.")
    return token.strip()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Return what changes when the file does; None while it is not there."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
