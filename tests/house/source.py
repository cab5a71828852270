"""The source that the house checks read: parsed once, and small samples made the same way."""

import ast
import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kvfence"
SKIPPED_FOLDERS = {".git", ".venv", "__pycache__", ".hypothesis"}


@dataclass(frozen=True)
class Module:
    """One file. `place` is its path below `src/kvfence`; `package` the first folder of it, or its name."""

    place: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.place.split("/")[0].removesuffix(".py")


def sample(text: str, place: str = "protocol/sample.py") -> Module:
    """A module that exists only in a test."""
    return Module(place, text, ast.parse(text))


@functools.cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    files = sorted(SOURCE.rglob("*.py"))
    return tuple(sample(file.read_text(), file.relative_to(SOURCE).as_posix()) for file in files)


def kept_files() -> list[Path]:
    """Files that git keeps or would keep; where there is no git, everything but the usual litter."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not SKIPPED_FOLDERS & set(path.parts)]
    return [path for path in found if path.is_file()]
