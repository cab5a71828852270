"""Which processors and threads each compute node gets, and how large its pool may be by default.

The rule: threads = cores ÷ nodes, each node pinned to processors of its own; what is left over goes to the
first nodes, one each. Nothing is oversubscribed by default: on two cores, two nodes of two threads each were
measured at a third of the speed of one thread each. Where the operator wants more threads than there are
cores, or more nodes, nobody is pinned, waiting threads sleep (`OMP_WAIT_POLICY=passive`), and a warning says
so. The router is not placed: it waits most of the time and runs wherever there is room.

It chooses; it sets nothing. The node pins itself and sets its threads, and gets `environment` at its start,
because OpenMP reads its wait policy when the library is loaded.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvfence.protocol.errors import invariant

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
POOL_CONTEXTS = 2
POOL_MEMORY_SHARE = 4  # one part in four of the memory that is the node's


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """`cpus` None: wherever the kernel likes, among the processors that the launcher may use."""

    threads: int
    cpus: tuple[int, ...] | None
    is_oversubscribed: bool

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the node's process."""
        policy = {"OMP_WAIT_POLICY": "passive"} if self.is_oversubscribed else {}
        return {**thread_environment(self.threads), **policy}


@dataclass(frozen=True, slots=True)
class Placement:
    """One placement a node, in the nodes' order, and what the operator should know about them."""

    nodes: tuple[NodePlacement, ...]
    warning: str | None


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that keep the numeric libraries to `threads` threads."""
    count = str(threads)
    return {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "TOKENIZERS_PARALLELISM": "false"}


def usable_cpus(cpu_max: Path = CPU_MAX) -> tuple[int, ...]:
    """Processors that this process may use; no more of them than its control group's quota pays for."""
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    quota = _quota_cpus(cpu_max)
    return allowed if quota is None else allowed[: max(1, quota)]


def _quota_cpus(cpu_max: Path) -> int | None:
    if not cpu_max.is_file():
        return None
    quota, _, period = cpu_max.read_text().partition(" ")
    if not quota.isdigit():  # "max": no quota
        return None
    return int(quota) // int(period)


def place(cpus: Sequence[int], nodes: int, threads: int | None = None) -> Placement:
    """Place `nodes` compute nodes on `cpus`. `threads` is the operator's wish for each, None for the rule."""
    invariant(cpus and nodes > 0, "there is a processor, and a node to place")
    wanted = len(cpus) // nodes if threads is None else threads
    if wanted * nodes > len(cpus) or wanted == 0:
        one = NodePlacement(max(1, wanted), None, is_oversubscribed=True)
        return Placement((one,) * nodes, _warning(len(cpus), nodes, one.threads))
    spare = len(cpus) % nodes if threads is None else 0
    placed, start = [], 0
    for node in range(nodes):
        end = start + wanted + (node < spare)
        placed.append(NodePlacement(end - start, tuple(cpus[start:end]), is_oversubscribed=False))
        start = end
    return Placement(tuple(placed), None)


def _warning(cores: int, nodes: int, threads: int) -> str:
    return (
        f"{nodes} nodes of {threads} thread(s) share {cores} core(s): they are not pinned, wait passively, "
        "and take longer over every step; use fewer nodes or threads, or a machine with more cores"
    )


def pool_bytes_limit(available_bytes: int, nodes: int) -> int:
    """What one node's default pool may take: a quarter of its share of the memory that is available."""
    return available_bytes // nodes // POOL_MEMORY_SHARE


def default_pool_tokens(
    context_tokens: int, page_tokens: int, page_bytes: int, pool_bytes_max: int | None
) -> int:
    """Twice the context in whole pages, or what `pool_bytes_max` holds where that is less; at least a page.

    It may come out below the context: then the start fails, or lowers the context, as the operator chose.
    """
    pages = -(-POOL_CONTEXTS * context_tokens // page_tokens)
    if pool_bytes_max is not None:
        pages = min(pages, pool_bytes_max // page_bytes)
    return max(1, pages) * page_tokens
