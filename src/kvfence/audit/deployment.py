"""What is audited: nodes with their addresses and files, pairs, and how they are reached.

It comes from the command line, or from a TOML file that describes a deployment. Keys are named by environment
variables and are not in here. An unknown key of the file is an error with a suggestion; every node and pair
knows its line, so that a finding can point to it.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from kvfence.audit.deployment_lines import Lines, lines_in
from kvfence.protocol.errors import OperatorError
from kvfence.report import Place

ROLES = ("prefill", "decode", "router", "server")
NODES_MAX = 1_024
PAIRS_MAX = 4_096
FILE_BYTES_MAX = 1 << 20
TIMEOUT_S = 10.0
PLAIN_URL = "take it out of the url, and name the key by its environment variable (--key-env, key_env)"
TIMEOUT_S_MAX = 300.0

TOP_KEYS = ("ca_file", "key_env", "node", "pair", "proxy", "timeout_s")
NODE_KEYS = ("env", "key_env", "log", "name", "queue_wait_s_max", "role", "saved", "url", "version")
PAIR_KEYS = ("decode", "prefill")


@dataclass(frozen=True, slots=True)
class Access:
    """How addresses are reached. `key_env` names an environment variable; the key itself is nowhere."""

    key_env: str | None = None
    ca_file: Path | None = None
    proxy: str | None = None
    timeout_s: float = TIMEOUT_S


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node as the operator names it. `reads_stdin`: its log comes on standard input.

    `version` is the engine's, for logs that do not tell it. `env` are environment variables that the node is
    known to run with: no server tells them.
    `queue_wait_s_max`: how long a request may wait on this node before it is answered 503, in seconds.
    """

    name: str
    role: str | None = None
    url: str | None = None
    log: Path | None = None
    saved: tuple[Path, ...] = ()
    reads_stdin: bool = False
    key_env: str | None = None
    version: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    queue_wait_s_max: float | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class PairSpec:
    """A prefill and a decode node that serve requests together, by their names."""

    prefill: str
    decode: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Deployment:
    """All that one audit looks at."""

    nodes: tuple[NodeSpec, ...]
    pairs: tuple[PairSpec, ...] = ()
    access: Access = Access()


def read_deployment(path: Path) -> Deployment:
    """Return what a TOML file describes. Raises OperatorError that names the file, the line and the fix."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise OperatorError(f"{path} has more than {FILE_BYTES_MAX:,} bytes, too many for a deployment")
        text = path.read_text("utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}; name a file that is there") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path} is not TOML: {error}; correct that place") from error
    return _Reader(path, lines_in(text)).deployment(table)


class _Reader:
    """Checks one file, table by table; knows where it is for what it refuses."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self._path = path
        self._lines = lines

    def deployment(self, table: Mapping[str, Any]) -> Deployment:
        """The whole file."""
        self._known(table, TOP_KEYS, "", 0)
        nodes = tuple(self._node(item, index) for index, item in enumerate(self._tables(table, "node")))
        if not nodes:
            self._refuse(
                1, "describes no node", "add a [[node]] with a name, a role and a url, log or saved file"
            )
        names = [node.name for node in nodes]
        for index, name in enumerate(names):
            if name in names[:index]:
                self._refuse(self._lines.of("node", index, "name"), f"has two nodes {name!r}", "rename one")
        pairs = tuple(
            self._pair(item, index, nodes) for index, item in enumerate(self._tables(table, "pair"))
        )
        return Deployment(nodes, pairs, self._access(table))

    def _access(self, table: Mapping[str, Any]) -> Access:
        ca_file = self._text(table, "ca_file", "", 0)
        timeout = table.get("timeout_s", TIMEOUT_S)
        if (
            isinstance(timeout, bool)
            or not isinstance(timeout, int | float)
            or not 0 < timeout <= TIMEOUT_S_MAX
        ):
            where = self._lines.of("", 0, "timeout_s")
            self._refuse(where, f"sets timeout_s to {timeout!r}", f"use seconds up to {TIMEOUT_S_MAX:g}")
        return Access(
            key_env=self._text(table, "key_env", "", 0),
            ca_file=None if ca_file is None else self._beside(ca_file),
            proxy=self._text(table, "proxy", "", 0),
            timeout_s=float(timeout),
        )

    def _node(self, table: Mapping[str, Any], index: int) -> NodeSpec:
        self._known(table, NODE_KEYS, "node", index)
        line = self._lines.of("node", index)
        name = self._text(table, "name", "node", index)
        if name is None:
            self._refuse(line, "has a node without a name", 'add name = "…"')
        role = self._text(table, "role", "node", index)
        if role is not None and role not in ROLES:
            where = self._lines.of("node", index, "role")
            self._refuse(where, f"gives {name} the role {role!r}", _suggestion(role, ROLES))
        url = self._text(table, "url", "node", index)
        if url is not None and not is_url(url):
            where = self._lines.of("node", index, "url")
            self._refuse(
                where, f"gives {name} the url {without_password(url)!r}", "write it as http://host:port"
            )
        secret = None if url is None else secret_part(url)
        if url is not None and secret is not None:
            where = self._lines.of("node", index, "url")
            self._refuse(where, f"gives {name} a {secret}", PLAIN_URL)
        log = self._text(table, "log", "node", index)
        spec = NodeSpec(
            name=name,
            role=role,
            url=url,
            log=None if log is None else self._beside(log),
            saved=tuple(map(self._beside, self._texts(table, "saved", index))),
            key_env=self._text(table, "key_env", "node", index),
            version=self._text(table, "version", "node", index),
            env=self._env(table, index),
            queue_wait_s_max=self._seconds(table, index),
            place=Place(path=str(self._path), line=line),
        )
        if spec.url is None and spec.log is None and not spec.saved:
            self._refuse(line, f"says nothing of where {name} can be read", "add url, log or saved")
        return spec

    def _pair(self, table: Mapping[str, Any], index: int, nodes: tuple[NodeSpec, ...]) -> PairSpec:
        self._known(table, PAIR_KEYS, "pair", index)
        ends = {}
        for end in ("prefill", "decode"):
            name = self._text(table, end, "pair", index)
            if name is None:
                self._refuse(self._lines.of("pair", index), f"has a pair without {end}", f'add {end} = "…"')
            if name not in [node.name for node in nodes]:
                where = self._lines.of("pair", index, end)
                known = tuple(node.name for node in nodes)
                self._refuse(where, f"pairs {name!r}, which is no node", _suggestion(name, known))
            ends[end] = name
        line = self._lines.of("pair", index)
        return PairSpec(ends["prefill"], ends["decode"], Place(path=str(self._path), line=line))

    def _tables(self, table: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
        several = table.get(key, [])
        most = NODES_MAX if key == "node" else PAIRS_MAX
        if not isinstance(several, list) or not all(isinstance(item, dict) for item in several):
            self._refuse(
                self._lines.of("", 0, key), f"has {key} as something else than tables", f"write [[{key}]]"
            )
        if len(several) > most:
            self._refuse(1, f"has more than {most:,} tables {key}", "divide it into several files")
        yield from several

    def _known(self, table: Mapping[str, Any], keys: tuple[str, ...], name: str, index: int) -> None:
        for key in table:
            if key not in keys:
                what = (
                    f"sets {key!r}" + (f" of a {name}" if name else "") + ", which is no setting of an audit"
                )
                self._refuse(self._lines.of(name, index, key), what, _suggestion(key, keys))

    def _text(self, table: Mapping[str, Any], key: str, name: str, index: int) -> str | None:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            where = self._lines.of(name, index, key)
            self._refuse(where, f"sets {key} to {value!r}", "write a text in quotation marks")
        return value

    def _texts(self, table: Mapping[str, Any], key: str, index: int) -> tuple[str, ...]:
        value = table.get(key, [])
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list) or not all(isinstance(item, str) and item for item in several):
            where = self._lines.of("node", index, key)
            self._refuse(where, f"sets {key} to {value!r}", "write one file, or a list of files")
        return tuple(several)

    def _env(self, table: Mapping[str, Any], index: int) -> Mapping[str, str]:
        value = table.get("env", {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            where = self._lines.of("node", index, "env")
            self._refuse(
                where, "sets env to something else than texts by name", 'write env = { NAME = "value" }'
            )
        return dict(value)

    def _seconds(self, table: Mapping[str, Any], index: int) -> float | None:
        value = table.get("queue_wait_s_max")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            where = self._lines.of("node", index, "queue_wait_s_max")
            self._refuse(where, f"sets queue_wait_s_max to {value!r}", "write seconds above zero")
        return float(value)

    def _beside(self, name: str) -> Path:
        return self._path.parent / name

    def _refuse(self, line: int, what: str, fix: str) -> NoReturn:
        raise OperatorError(f"{self._path}:{line} {what}: {fix}")


def without_password(address: str) -> str:
    """Return an address as it may be repeated in an error: without what stands before its @."""
    scheme, slashes, rest = address.rpartition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"


def secret_part(url: str) -> str | None:
    """Say what stands in an address that may be a secret and would be shown; None if nothing does."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return "url with a user name or password in it"
    return "url with a query in it" if parts.query or parts.fragment else None


def is_url(text: str) -> bool:
    """Whether it is an address that can be asked: http or https, with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known)}"
