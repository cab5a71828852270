"""Nodes for tests, made as the audit makes them: of log lines, and of pages that were answered or saved."""

import json

from kvfence.audit.deployment import NodeSpec
from kvfence.audit.log_blocks import LINE_BYTES_MAX
from kvfence.audit.node import Heard, Node, nodes_of
from kvfence.audit.page import page_of
from kvfence.audit.sources import scan_stream

assert LINE_BYTES_MAX > 1_000, "lines of tests are not cut"


def body_of(said) -> bytes:
    """Text as it is, anything else as JSON."""
    return said.encode() if isinstance(said, str) else json.dumps(said).encode()


def nodes(*lines, pages=None, saved=None, name="node", role=None, url=None, failure=None, **declared):
    """Every node that comes of these lines and pages. `pages` by path, `saved` by file name."""
    answered = [page_of(path, f"GET {path}", body_of(said)) for path, said in (pages or {}).items()]
    kept = [page_of(None, file, body_of(said)) for file, said in (saved or {}).items()]
    logs = scan_stream("node.log", ["".join(f"{line}\n" for line in lines).encode()]) if lines else ()
    open_paths = tuple(pages or ()) if url is not None else ()
    heard = Heard((*answered, *kept), tuple(logs), open_paths, (), failure)
    return nodes_of(NodeSpec(name=name, role=role, url=url, **declared), heard)


def node(*lines, **facts) -> Node:
    """The one node that comes of them."""
    (one,) = nodes(*lines, **facts)
    return one


def figures(one: Node) -> dict:
    """Its figures without where they were read and without settings."""
    return {name: figure.value for name, figure in one.reading.figures.items() if not name.startswith("set.")}


def settings(one: Node) -> dict:
    """Its settings."""
    return {
        name.removeprefix("set."): figure.value
        for name, figure in one.reading.figures.items()
        if name.startswith("set.")
    }
