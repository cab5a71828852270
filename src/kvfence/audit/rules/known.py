"""KVF105, KVF109, KVF110, KVF112: combinations of version and setting that are known to do harm.

They stand in `known_vulnerable.toml`.

An entry fits when engine, version and every setting fit. Where the version is not known, or a setting was not
read, it does not fit, and a note says how many entries could not be held against a node.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kvfence.audit.findings import Audit, found, read_where
from kvfence.audit.node import Node
from kvfence.audit.versions import is_within
from kvfence.protocol.errors import invariant
from kvfence.report import Finding, Severity

DATA = "known_vulnerable.toml"
KEYS = ("code", "engine", "fixed", "first", "name", "severity", "sources", "when", "words")
ROLE = "role"


@dataclass(frozen=True, slots=True)
class Entry:
    """`first` ≤ version < `fixed`, open where None; both None: any version. `when`: values of settings."""

    name: str
    engine: str
    code: str
    severity: Severity
    words: str
    sources: tuple[str, ...]
    first: str | None
    fixed: str | None
    when: tuple[tuple[str, tuple[object, ...]], ...]


@cache
def entries() -> tuple[Entry, ...]:
    """Return the list that comes with the program."""
    text = (files("kvfence.audit") / DATA).read_text("utf-8")
    return tuple(_entry(item) for item in tomllib.loads(text)["entry"])


def _entry(item: dict[str, Any]) -> Entry:
    invariant(set(item) <= set(KEYS), f"the entry {item.get('name')!r} has unknown keys")
    return Entry(
        name=item["name"],
        engine=item["engine"],
        code=item["code"],
        severity=Severity(item["severity"]),
        words=" ".join(item["words"].split()),
        sources=tuple(item["sources"]),
        first=item.get("first"),
        fixed=item.get("fixed"),
        when=tuple((name, tuple(values)) for name, values in item.get("when", {}).items()),
    )


def known_vulnerable(audit: Audit) -> Iterator[Finding]:
    """Hold every entry against every node."""
    for node in audit.heard:
        for entry in entries():
            if entry.engine == node.reading.engine and fits(entry, node) is True:
                yield _finding(entry, node)
        yield from _unsafe_by_wish(node)


def fits(entry: Entry, node: Node) -> bool | None:
    """Whether an entry fits a node of its engine. None: it may, and something needed for it was not read."""
    is_open = False
    for name, values in entry.when:
        value = node.role if name == ROLE else node.reading.value(name)
        if value is None:
            is_open = True
        elif value not in values:
            return False
    if entry.first is None and entry.fixed is None:
        return None if is_open else True
    version = node.reading.version
    within = None if version is None else is_within(version, first=entry.first, fixed=entry.fixed)
    if within is False:
        return False
    return None if is_open or within is None else True


def open_entries(node: Node) -> tuple[str, ...]:
    """The names of entries of the node's engine that could not be decided."""
    own = (entry for entry in entries() if entry.engine == node.reading.engine)
    return tuple(entry.name for entry in own if fits(entry, node) is None)


def _finding(entry: Entry, node: Node) -> Finding:
    settings = [name for name, _ in entry.when if name != ROLE]
    version = "" if entry.fixed is None and entry.first is None else f"{node.reading.version}: "
    upgrade = None if entry.fixed is None else f"upgrade to {entry.fixed} or newer"
    return found(
        entry.code,
        node,
        f"{version}{entry.words}",
        subject_key=entry.name,
        severity=entry.severity,
        place=node.place(*settings),
        evidence={"entry": entry.name, **read_where(node, *settings)},
        fix=upgrade,
        references=entry.sources,
    )


def _unsafe_by_wish(node: Node) -> Iterator[Finding]:
    """A kvfence that was told to leak."""
    for setting in ("set.unsafe_faults", "set.unsafe_without"):
        value = node.reading.value(setting)
        if node.reading.engine == "kvfence" and node.reading.part is None and value is not None:
            yield found(
                "KVF105",
                node,
                f"it runs with {setting.removeprefix('set.')} {value}: it leaks by its operator's wish",
                subject_key=setting,
                severity=Severity.CRITICAL,
                evidence=read_where(node, setting),
                fix="start it without --unsafe-fault and --unsafe-without",
            )
