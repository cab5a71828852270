"""What was measured where: a figure without its machine, versions and date says nothing."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "numpy", "xxhash")
CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")
TELLING_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def describe_machine() -> dict[str, str]:
    """Return facts for people to read, in the order in which they are shown."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _memory(),
        "load": " ".join(f"{value:.1f}" for value in os.getloadavg()),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "kvfence": _version("kvfence"),
    }


def one_line(machine: dict[str, str]) -> str:
    """Say it in one line."""
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", *PACKAGES, "kvfence"))
    return (
        f"{machine['date']}; {machine['cores']} cores of {machine['cpu']}, {machine['memory']}; "
        f"load {machine['load']}; {versions}"
    )


def _cpu() -> str:
    if not CPUINFO.is_file():
        return platform.processor() or platform.machine()
    facts = dict(
        (part.strip() for part in line.split(":", 1))
        for line in CPUINFO.read_text().split("\n\n")[0].splitlines()
        if ":" in line
    )
    flags = set(facts.get("flags", "").split())
    told = [flag for flag in TELLING_FLAGS if flag in flags]
    return f"{facts.get('model name', platform.machine())} ({', '.join(told)})"


def _memory() -> str:
    if not MEMINFO.is_file():
        return "memory unknown"
    kib = int(MEMINFO.read_text().split(maxsplit=2)[1])
    return f"{kib / 2**20:.0f} GiB"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
