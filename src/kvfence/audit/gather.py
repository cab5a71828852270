"""Hearing every declared node: its address is asked, its files and logs are read, each once.

Nodes are asked side by side, a bounded number at a time; files are read one after the other. What cannot be
reached is told as such and stops nobody else.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

import httpx

from kvfence.audit.deployment import Access, Deployment, NodeSpec
from kvfence.audit.fetch import Fetched, fetch_node, make_client
from kvfence.audit.node import Heard
from kvfence.audit.sources import read_log, read_saved, read_stream
from kvfence.protocol.errors import OperatorError

NODES_AT_ONCE = 16
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")


@dataclass(frozen=True, slots=True)
class Around:
    """What lies around an audit: environment variables with keys, standard input; for tests a transport."""

    environment: Mapping[str, str]
    stdin: BinaryIO | None = None
    transport: httpx.AsyncBaseTransport | None = None


async def hear_all(deployment: Deployment, around: Around) -> tuple[Heard, ...]:
    """Return what each node said, in order. Raises OperatorError for a file or key that is not there."""
    keys = [key_of(spec, deployment.access, around.environment) for spec in deployment.nodes]
    files = [_read_files(spec, around.stdin) for spec in deployment.nodes]
    at_once = asyncio.Semaphore(NODES_AT_ONCE)

    async def ask(spec: NodeSpec, key: str | None) -> Fetched | None:
        if spec.url is None:
            return None
        async with at_once:
            return await fetch_node(client, spec.url, key, deployment.access.timeout_s)

    async with make_client(deployment.access, around.transport) as client:
        asked = await asyncio.gather(
            *(ask(spec, key) for spec, key in zip(deployment.nodes, keys, strict=True))
        )
    return tuple(_together(fetched, heard) for fetched, heard in zip(asked, files, strict=True))


def key_of(spec: NodeSpec, access: Access, environment: Mapping[str, str]) -> str | None:
    """Return the key of a node. Raises OperatorError, which names the environment variable alone."""
    name = spec.key_env or access.key_env
    if name is None or spec.url is None:
        return None
    key = environment.get(name)
    if not key:
        # Somebody may have given the key where its variable's name is wanted: such a word is not repeated.
        shown = name if _VARIABLE.fullmatch(name) else "of that name (not repeated here: it may be a key)"
        raise OperatorError(
            f"the environment variable {shown} is not set: put the key for {spec.name} into it"
        )
    if not (key.isascii() and key.isprintable()):
        raise OperatorError(f"what is in {name} can be no key: it has characters that no header may have")
    return key


def _read_files(spec: NodeSpec, stdin: BinaryIO | None) -> Heard:
    pages = [read_saved(path) for path in spec.saved]
    logs = [] if spec.log is None else list(read_log(spec.log))
    if spec.reads_stdin:
        if stdin is None:
            raise OperatorError("there is no standard input to read a log from: name a file")
        more_pages, more_logs = read_stream(stdin, spec.name)
        pages += more_pages
        logs += more_logs
    return Heard(tuple(pages), tuple(logs))


def _together(fetched: Fetched | None, files: Heard) -> Heard:
    """Answers of the running node come first: they are the newest."""
    if fetched is None:
        return files
    return replace(
        files,
        pages=(*fetched.pages, *files.pages),
        open_paths=tuple(fetched.open_paths),
        notes=tuple(fetched.notes),
        failure=fetched.failure,
    )
