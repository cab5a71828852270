"""STYLE 15 and 8: no module-level mutable state, and a package's `__init__` is its public list.

A table of constants may be a dict, list or set if its name is in capitals and nothing in the module writes
to it; everything else that is made at module level must be immutable.
"""

import ast
from collections.abc import Iterator

from tests.house.banned import dotted
from tests.house.source import Module

MUTABLE_CALLS = {"bytearray", "collections.Counter", "Counter", "defaultdict", "deque", "dict", "list", "set"}
WRITES = {
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "sort",
    "update",
}


def _is_mutable(value: ast.AST | None) -> bool:
    if isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return isinstance(value, ast.Call) and dotted(value.func) in MUTABLE_CALLS


def _module_level(module: Module) -> Iterator[tuple[ast.expr, ast.AST | None, int]]:
    for node in module.tree.body:
        if isinstance(node, ast.Assign):
            yield from ((target, node.value, node.lineno) for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            yield node.target, node.value, node.lineno


def mutable_state(module: Module) -> Iterator[str]:
    """Module-level state that could change, or does."""
    tables = set()
    for target, value, line in _module_level(module):
        if not isinstance(target, ast.Name) or target.id == "__all__" or not _is_mutable(value):
            continue
        if target.id.isupper():
            tables.add(target.id)
        else:
            yield f"{module.place}:{line}: {target.id} is mutable state of the module: give it to an object"
    for node in ast.walk(module.tree):
        name = _written(node)
        if name in tables:
            yield f"{module.place}:{node.lineno}: the table {name} is written to: it is a constant"  # type: ignore[attr-defined]


def _written(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return dotted(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
        return dotted(node.func.value)
    return ""


def public_list_faults(module: Module) -> Iterator[str]:
    """An `__init__` says what the package is, and `__all__` has every name of its own that it brings in."""
    if ast.get_docstring(module.tree) is None:
        yield f"{module.place}: says nothing: open it with what the package is"
    own, bound, listed = _names(module)
    if listed is None:
        if own:
            yield f"{module.place}: brings {sorted(own)} in and has no __all__"
        return
    for name in sorted(own - listed):
        yield f"{module.place}: {name} is brought in and is not in __all__: list it, or leave it where it is"
    for name in sorted(listed - bound):
        yield f"{module.place}: __all__ has {name}, which is not there"


def _names(module: Module) -> tuple[set[str], set[str], set[str] | None]:
    """Names imported from the package itself, all names bound at module level, and `__all__`."""
    own: set[str] = set()
    bound: set[str] = set()
    listed = None
    # Imports for the type checker alone count: a lazy package has all of its names there.
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            names = {alias.asname or alias.name for alias in node.names}
            bound |= names
            if (node.module or "").startswith(f"kvfence.{module.package}"):
                own |= names
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
    for target, value, _ in _module_level(module):
        if isinstance(target, ast.Name):
            bound.add(target.id)
            if target.id == "__all__" and isinstance(value, ast.List | ast.Tuple):
                listed = {word.value for word in value.elts if isinstance(word, ast.Constant)}
    return own, bound, listed
