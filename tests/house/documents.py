"""What the documents name is there: files, flags, metrics; and what the nodes count is explained.

Only names can be checked like this, not sentences. It reads README, ARCHITECTURE, CHANGELOG and `docs/`;
the flags and metrics are the program's own, asked of it.
"""

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.house.source import ROOT, Module

DOCUMENTS = tuple(
    sorted(
        path.relative_to(ROOT).as_posix() for pattern in ("*.md", "docs/*.md") for path in ROOT.glob(pattern)
    )
)
# Links to what is made later, and by whom.
MADE_LATER = {"docs/figures.md": "written from the results by `python -m benchmarks --write-readme`"}
# Flags of scripts in docs/ and benchmarks/, and of `kvfence` itself.
OTHER_FLAGS = frozenset({"--config", "--engine", "--help", "--measure", "--version", "--write-readme"})

_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_METRIC = re.compile(r"\bkvfence_[a-z0-9_]+")
_FILE = re.compile(r"`((?:[\w-]+/)+[\w*-]+\.\w+)`")
_FIGURE_CALLS = {"add", "begin", "set"}


def dead_links(name: str, text: str, root: Path = ROOT) -> Iterator[str]:
    """Relative links that lead nowhere."""
    for target in _LINK.findall(text):
        place = (Path(name).parent / target).as_posix()
        if "://" not in target and place not in MADE_LATER and not (root / place).exists():
            yield f"{name}: the link to {target} leads nowhere"


def unknown_flags(name: str, text: str, flags: Collection[str]) -> Iterator[str]:
    """Flags that `kvfence serve` does not have."""
    for flag in sorted(set(_FLAG.findall(text)) - set(flags) - OTHER_FLAGS):
        yield f"{name}: there is no flag {flag}"


def unknown_metrics(name: str, text: str, metrics: Collection[str]) -> Iterator[str]:
    """Metrics that nobody shows. Those of a histogram are named without their endings."""
    for metric in sorted(set(_METRIC.findall(text)) - set(metrics)):
        yield f"{name}: there is no metric {metric}"


def missing_files(name: str, text: str, root: Path = ROOT) -> Iterator[str]:
    """Files that are named by their path, from the root or from `src/kvfence`, and are not there."""
    for path in sorted(set(_FILE.findall(text)) - set(MADE_LATER)):
        if not any(any(base.glob(path)) for base in (root, root / "src" / "kvfence")):
            yield f"{name}: there is no file {path}"


def figures_of(module: Module) -> set[str]:
    """Names of the figures that a module of a node counts or sets."""
    found = set()
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        is_key = isinstance(node.func, ast.Name) and node.func.id == "stat_key"
        if is_key or (isinstance(node.func, ast.Attribute) and _is_about_stats(node.func)):
            found |= {
                word.value
                for word in node.args
                if isinstance(word, ast.Constant) and isinstance(word.value, str)
            }
    return found


def _is_about_stats(function: ast.Attribute) -> bool:
    owner = function.value
    name = (
        owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else None
    )
    return function.attr in _FIGURE_CALLS and name == "stats"
