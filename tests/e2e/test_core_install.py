"""The core install: what `check` and `audit` need, without torch, in few mebibytes, on an empty environment."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT, kept_files

MEBIBYTES_MAX = 90
MIB = 1 << 20
HEAVY = {"torch", "numpy", "transformers", "zmq", "starlette", "uvicorn"}
COMMANDS = (
    "audit --help",
    "check --help",
    "watch --help",
    "explain KVF101",
    "faults",
    "verify --scope smoke",
)

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with kvfence and what it depends on, and nothing else; pip itself is taken out again."""
    folder = tmp_path_factory.mktemp("core")
    source = folder / "source"
    for file in kept_files():
        target = source / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "python", "-m", "pip", "install", "--quiet", source], check=True)
    return venv


def packages_of(venv: Path) -> Path:
    (found,) = venv.glob("lib/python*/site-packages")
    return found


def test_it_is_small_and_has_nothing_heavy(core: Path):
    packages = packages_of(core)
    own = [path for path in packages.iterdir() if path.name.split("-")[0] not in {"pip", "setuptools"}]
    size = sum(file.stat().st_size for path in own for file in [path, *path.rglob("*")] if file.is_file())
    print(f"core install: {size / MIB:.1f} MiB")
    assert size < MEBIBYTES_MAX * MIB
    assert not HEAVY & {path.name for path in own}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_instruments_run_there(core: Path, command: str):
    ran = subprocess.run(
        [core / "bin" / "kvfence", *command.split()],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "100"},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_a_server_that_is_not_there_is_told_by_its_own_code(core: Path):
    ran = subprocess.run(
        [core / "bin" / "kvfence", "check", "http://127.0.0.1:9"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "100"},
    )
    assert ran.returncode == 4, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
