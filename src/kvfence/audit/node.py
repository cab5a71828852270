"""A node of the audit: what was declared of it, what was read, and what its pool and context come to.

One address or log may speak for several nodes (the nodes of a deployment, pods whose logs were put together);
each is one of these.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from kvfence.audit.deployment import NodeSpec
from kvfence.audit.judge import TOO_SMALL, Judgement, judge, judge_unreachable
from kvfence.audit.log_scan import Hits
from kvfence.audit.page import Page
from kvfence.audit.readers import recognise
from kvfence.audit.readers.interface import Reader
from kvfence.audit.reading import Material, Reading
from kvfence.audit.sources import LogRead
from kvfence.report import Figure, Place

DEFERRED_RELEASE = "SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE"
BATCH_INDICES = "SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES"
TRUE_WORDS = ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True)
class Node:
    """`open_paths` answered 200 without a key; `failure`: why nothing could be read over its address."""

    name: str
    spec: NodeSpec
    reading: Reading
    judgement: Judgement
    open_paths: tuple[str, ...] = ()
    shows_key: bool = False
    failure: str | None = None

    @property
    def role(self) -> str | None:
        """The declared role; where none is declared, what the node says."""
        if self.reading.part is not None:
            return self.reading.role
        return self.spec.role or self.reading.role

    @property
    def is_loopback(self) -> bool:
        """Whether its address can be reached from its own machine alone."""
        host = "" if self.spec.url is None else urlsplit(self.spec.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False

    def place(self, *figures: str) -> Place | None:
        """Where the first of these figures stands in a file; else where the node is declared."""
        if self.spec.reads_stdin:
            return None
        found = (self.reading.places[name] for name in figures if name in self.reading.places)
        return next(found, self.spec.place)


@dataclass(frozen=True, slots=True)
class Heard:
    """All that came of one declared node: answers, saved answers, logs."""

    pages: tuple[Page, ...] = ()
    logs: tuple[LogRead, ...] = ()
    open_paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    failure: str | None = None


def nodes_of(spec: NodeSpec, heard: Heard) -> tuple[Node, ...]:
    """Return the nodes that this is about, read and judged."""
    if heard.failure is not None and not heard.pages and not heard.logs:
        reading = Reading(None, role=spec.role)
        return (Node(spec.name, spec, reading, judge_unreachable(heard.failure), failure=heard.failure),)
    groups = list(_groups(spec, heard))
    return tuple(_node(spec, heard, name, reading) for name, readings in groups for reading in readings)


def _groups(spec: NodeSpec, heard: Heard) -> Iterator[tuple[str, tuple[Reading, ...]]]:
    """(name, readings): pages with the log of the same node, and each further log for itself."""
    logs = heard.logs
    if (
        not heard.pages and not logs
    ):  # it answered, and said nothing: that is a node of which nothing is known
        yield spec.name, _read((), None)[-1][1]
        return
    if heard.pages and len(logs) <= 1:
        yield spec.name, _read(heard.pages, logs[0] if logs else None)[-1][1]
        return
    if heard.pages:
        yield spec.name, _read(heard.pages, None)[-1][1]
    for log in logs:
        base = spec.name if len(logs) == 1 else log.name
        several = _read((), log)
        for kind, readings in several:
            yield (f"{base} ({kind})" if len(several) > 1 else base), readings


def _read(pages: tuple[Page, ...], log: LogRead | None) -> list[tuple[str, tuple[Reading, ...]]]:
    """Every start that speaks: (what tells it from the others, what was read)."""
    last: Mapping[str, Hits] = (
        {} if log is None else {engine: hits[-1] for engine, hits in log.starts.items()}
    )
    reader = recognise(pages, last)
    starts = (Hits(),) if log is None else log.starts[reader.engine]
    notes: tuple[str, ...] = () if log is None else log.notes
    if log is not None and log.starts_seen[reader.engine] > len(starts):
        notes = (*notes, f"the log holds {log.starts_seen[reader.engine]} starts: the last one is judged")
    found = []
    for hits in starts:
        readings = reader.read(Material(pages, hits))
        if log is not None and not pages:
            readings = _doubted(reader, log, hits, readings)
        doubt = _of_the_log(log, hits)
        if doubt is not None:
            readings = tuple(replace(one, doubt=one.doubt or doubt) for one in readings)
        words = [value for _, value in hits.identity(reader.forms)]
        noted = (replace(readings[0], notes=(*readings[0].notes, *notes)), *readings[1:])
        found.append((", ".join(words) or "first", noted))
    return found


def _of_the_log(log: LogRead | None, hits: Hits) -> str | None:
    """Why more may stand in a log than was read of it."""
    if log is None:
        return None
    return (
        "it has more lines, ranks or starts than are kept: some were left out" if hits.is_short else log.doubt
    )


def _doubted(reader: Reader, log: LogRead, hits: Hits, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """A start that took another's place is no pass if that was too small and nothing says that it ended."""
    identity = hits.identity(reader.forms)
    for earlier in log.replaced.get(reader.engine, ()):
        if earlier.identity(reader.forms) != identity:
            continue
        (before, *_) = reader.read(Material((), earlier))
        judgement = judge(before, before.role)
        if judgement.verdict == TOO_SMALL:
            why = (
                f"an earlier start in this log is too small ({judgement.why}), and nothing says that it "
                "ended: it may be another server's; give each server's log by itself, or from its last start"
            )
            return (replace(readings[0], doubt=readings[0].doubt or why), *readings[1:])
    return readings


def _node(spec: NodeSpec, heard: Heard, name: str, reading: Reading) -> Node:
    declared = _with_declared(spec, reading)
    is_part = reading.part is not None
    return Node(
        name=name if not is_part else f"{name}/{reading.part}",
        spec=spec,
        reading=declared,
        judgement=judge(declared, declared.role if is_part else spec.role or declared.role),
        open_paths=() if is_part else heard.open_paths,
        shows_key=not is_part and any(_shows_key(page) for page in heard.pages if page.path is not None),
        failure=heard.failure,
    )


def _with_declared(spec: NodeSpec, reading: Reading) -> Reading:
    """Add what the operator says of the node: its environment, which no server tells, and its version."""
    read_from = "declared" if spec.place is None else f"{spec.place.path}:{spec.place.line} env"
    figures = dict(reading.figures)
    release = spec.env.get(DEFERRED_RELEASE)
    if release is not None:
        figures["set.deferred_release"] = Figure(value=release.lower() in TRUE_WORDS, read_from=read_from)
    batch = spec.env.get(BATCH_INDICES)
    if batch is not None and batch.isascii() and batch.isdigit():
        figures["set.transfer_batch_max"] = Figure(value=int(batch), read_from=read_from)
    return replace(reading, figures=figures, version=reading.version or spec.version)


def _shows_key(page: Page) -> bool:
    """Whether an answer holds the server's own API key. It is looked for, and never kept."""
    for data in (page.data, page.data.get("server_args") if isinstance(page.data, dict) else None):
        if isinstance(data, dict) and any(
            isinstance(data.get(k), str) and data[k] for k in ("api_key", "admin_api_key")
        ):
            return True
    return False
