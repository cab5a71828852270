"""How much memory this process may still take: the machine's, or its container's where that is less.

A pool is backed by pages that the kernel hands out one by one; asking for more than there is ends with
the kernel killing a process. So the size is compared before anything is allocated.

It reads; it reserves nothing.
"""

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP_LIMITS = (
    # (limit, in use): version 2, then version 1 of control groups, as seen from inside a container.
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def available_memory_bytes(
    meminfo: Path = MEMINFO, cgroup_limits: tuple[tuple[Path, Path], ...] = CGROUP_LIMITS
) -> int | None:
    """Bytes that can be taken without swapping; None where the system does not say."""
    rooms = [_machine_room(meminfo), *(_group_room(limit, used) for limit, used in cgroup_limits)]
    known = [room for room in rooms if room is not None]
    return min(known) if known else None


def _machine_room(meminfo: Path) -> int | None:
    if not meminfo.exists():
        return None
    for line in meminfo.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None


def _group_room(limit: Path, used: Path) -> int | None:
    if not (limit.exists() and used.exists()):
        return None
    words = limit.read_text().strip()
    if not words.isdigit():  # "max": no limit
        return None
    return max(0, int(words) - int(used.read_text()))
