"""STYLE 1: rings, and imports that point inward only. Imports inside functions count too."""

import ast
import sys
from collections.abc import Iterator

from tests.house.source import Module

# Who may import whom; a package may always import itself, the top level (`kvfence.__version__`), and
# `lazy`, by which packages list their public names.
RINGS: dict[str, set[str]] = {
    "protocol": set(),
    "kv": {"protocol"},
    "transport": {"protocol", "kv"},
    "faults": {"protocol", "kv", "transport"},
    "engine": {"protocol", "kv", "transport"},
    "serving": {"protocol", "kv", "transport", "faults", "engine"},
    # A deployment without a machine: what simulation and verification have in common.
    "world": {"protocol", "kv"},
    "simulation": {"protocol", "kv", "faults", "world"},
    "verification": {"protocol", "kv", "faults", "world"},
    "replay": {"protocol", "kv", "transport", "faults", "engine", "serving"},
    # The instruments: they stand beside the engine, run where it is not installed, and share the reports.
    "report": {"protocol"},
    "audit": {"protocol", "report"},
    "check": {"protocol", "report"},
    "cli": {
        "protocol",
        "kv",
        "transport",
        "faults",
        "engine",
        "serving",
        "world",
        "simulation",
        "verification",
        "replay",
        "report",
        "audit",
        "check",
    },
    "lazy": set(),
    "__init__": set(),
    "__main__": {"cli"},
}
SERVE_PARTS = {
    "jinja2",
    "msgspec",
    "numpy",
    "prometheus_client",
    "starlette",
    "structlog",
    "tokenizers",
    "uvicorn",
    "zmq",
}
# Which packages of others each ring may use. What is missing here may use the standard library alone.
PARTS: dict[str, set[str]] = {
    "kv": {"numpy", "xxhash"},
    "transport": {"msgspec", "numpy"},
    "engine": {"gguf", "msgspec", "numpy", "safetensors", "tokenizers", "torch", "transformers"},
    "serving": SERVE_PARTS | {"rich"},
    "simulation": {"rich"},
    "verification": {"msgspec", "rich"},
    "replay": {"numpy", "rich"},
    "report": {"msgspec", "rich"},
    "audit": {"httpx", "msgspec", "packaging", "rich"},
    "check": {"httpx", "msgspec", "pyrage", "pytest", "rich"},
    "cli": {"httpx", "msgspec", "rich", "typer"},
}
# The protocol does no I/O, reads no clock, draws no random number (STYLE 2): of the standard library it
# has what computes.
PROTOCOL_STANDARD_LIBRARY = {
    "abc",
    "array",
    "bisect",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "operator",
    "struct",
    "sys",  # for sys.byteorder
    "types",
    "typing",
}


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything that is imported anywhere in the file."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                yield node.lineno, "." * node.level + base
            elif base == "kvfence":
                yield from ((node.lineno, f"kvfence.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, base


def ring_faults(module: Module, packages: set[str]) -> Iterator[str]:
    """Imports that point outward, name a part that the ring does not have, or are relative."""
    if module.package not in RINGS:
        yield f"{module.place}: the package {module.package} has no row in the table of rings: add one"
        return
    for line, name in imports(module):
        first, _, rest = name.partition(".")
        target = rest.split(".")[0]
        where = f"{module.place}:{line}: {name}"
        if first == "":
            yield f"{where}: write the import out in full, so that its ring can be read"
        elif first == "kvfence":
            inward = RINGS[module.package] | {module.package, "lazy"}
            if target in packages and target not in inward:
                yield f"{where}: {module.package} imports {target}, which lies outside of it"
        elif first in sys.stdlib_module_names:
            if module.package == "protocol" and first not in PROTOCOL_STANDARD_LIBRARY:
                yield f"{where}: the protocol does no I/O, reads no clock and draws no random number"
        elif first not in PARTS.get(module.package, set()):
            yield f"{where}: {module.package} does not use {first}; see the table of parts"
