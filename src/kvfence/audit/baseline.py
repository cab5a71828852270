"""The figures of an earlier audit, kept in a file: pool, context and largest request of each node.

They are kept with the engine and its version: between versions the same memory has been told as ten times the
pool, so figures of different versions are not compared. No address, no key and no setting is in the file.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kvfence.audit.judge import UNREACHABLE
from kvfence.audit.node import Node
from kvfence.audit.reading import CONTEXT, LARGEST, POOL
from kvfence.protocol.errors import OperatorError
from kvfence.report.atomic import write_atomically

FORMAT = 1
KEPT = (POOL, CONTEXT, LARGEST)


class KeptNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node as it was."""

    node: str
    engine: str | None
    engine_version: str | None
    figures: dict[str, int]


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    format: int = FORMAT
    nodes: list[KeptNode]

    def of(self, name: str) -> KeptNode | None:
        """The node of this name, if it was there."""
        return next((node for node in self.nodes if node.node == name), None)


def baseline_of(nodes: Iterable[Node], before: Baseline | None = None) -> Baseline:
    """Return what is kept of an audit; of a node that was not heard, what was kept before."""
    old = Baseline(nodes=[]) if before is None else before
    kept = (old.of(node.name) if node.judgement.verdict == UNREACHABLE else _kept(node) for node in nodes)
    return Baseline(nodes=[node for node in kept if node is not None])


def _kept(node: Node) -> KeptNode:
    return KeptNode(
        node=node.name,
        engine=node.reading.engine,
        engine_version=node.reading.version,
        figures={name: value for name in KEPT if (value := node.reading.number(name)) is not None},
    )


def read_baseline(path: Path) -> Baseline:
    """Return a file's figures. Raises OperatorError."""
    try:
        baseline = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise OperatorError(
            f"the baseline {path} cannot be read: {error.strerror}; write it first with --write-baseline"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(
            f"{path} is no baseline of figures: {error}; write a new one with --write-baseline"
        ) from error
    if baseline.format != FORMAT:
        raise OperatorError(
            f"{path} has format {baseline.format}, which this version does not know; write it anew"
        )
    return baseline


def write_baseline(path: Path, nodes: Iterable[Node], before: Baseline | None = None) -> None:
    """Write what is kept of an audit, whole or not at all. Raises OperatorError."""
    text = msgspec.json.format(msgspec.json.encode(baseline_of(nodes, before)), indent=2)
    write_atomically(path, f"{text.decode()}\n")
