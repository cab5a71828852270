"""What the launcher chooses for a machine: threads, processors, pools."""

import os

import pytest

from kvfence.protocol.errors import InvariantError
from kvfence.serving.placement import (
    default_pool_tokens,
    place,
    pool_bytes_limit,
    thread_environment,
    usable_cpus,
)


@pytest.mark.parametrize(
    ("cores", "nodes", "chosen"),
    [
        (1, 1, [(0,)]),
        (2, 1, [(0, 1)]),
        (2, 2, [(0,), (1,)]),
        (3, 2, [(0, 1), (2,)]),
        (4, 2, [(0, 1), (2, 3)]),
        (8, 3, [(0, 1, 2), (3, 4, 5), (6, 7)]),
        (16, 4, [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)]),
    ],
)
def test_threads_are_cores_by_nodes_and_pinned_apart(cores, nodes, chosen):
    placement = place(range(cores), nodes)
    assert [node.cpus for node in placement.nodes] == chosen
    assert [node.threads for node in placement.nodes] == [len(cpus) for cpus in chosen]
    assert placement.warning is None
    assert all("OMP_WAIT_POLICY" not in node.environment for node in placement.nodes)


@pytest.mark.parametrize(("cores", "nodes"), [(1, 2), (2, 3), (2, 64)])
def test_more_nodes_than_cores_get_a_thread_each_and_wait_passively(cores, nodes):
    placement = place(range(cores), nodes)
    assert {(node.threads, node.cpus) for node in placement.nodes} == {(1, None)}
    assert placement.nodes[0].environment["OMP_WAIT_POLICY"] == "passive"
    assert f"{nodes} nodes" in placement.warning
    assert f"{cores} core" in placement.warning


def test_the_operators_threads_are_pinned_when_they_fit_and_warned_about_when_not():
    fits = place(range(8), 2, threads=3)
    assert [node.cpus for node in fits.nodes] == [(0, 1, 2), (3, 4, 5)]
    assert fits.warning is None
    too_many = place(range(2), 2, threads=2)
    assert {(node.threads, node.cpus) for node in too_many.nodes} == {(2, None)}
    assert too_many.nodes[0].environment["OMP_NUM_THREADS"] == "2"
    assert too_many.warning


def test_processors_keep_their_numbers():
    assert [node.cpus for node in place((3, 5, 9, 12), 2).nodes] == [(3, 5), (9, 12)]


def test_nothing_to_place_is_our_own_fault():
    with pytest.raises(InvariantError):
        place((), 1)
    with pytest.raises(InvariantError):
        place((0,), 0)


def test_usable_cpus_are_this_process_own_and_no_more_than_the_quota(tmp_path):
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    quota = tmp_path / "cpu.max"
    assert usable_cpus(quota) == allowed
    quota.write_text("max 100000\n")
    assert usable_cpus(quota) == allowed
    quota.write_text("100000 100000\n")
    assert usable_cpus(quota) == allowed[:1]
    quota.write_text("50000 100000\n")
    assert usable_cpus(quota) == allowed[:1]


def test_thread_environment_names_every_library():
    assert set(thread_environment(3).values()) == {"3", "false"}


@pytest.mark.parametrize(
    ("context", "limit", "tokens"),
    [
        (8192, None, 16_384),
        (8192, 10**12, 16_384),
        (100, None, 208),  # whole pages
        (8192, 64 * 1000, 16_000),  # the memory holds 1,000 pages
        (8192, 10, 16),  # never less than a page: the start then fails by the context
    ],
)
def test_the_default_pool_is_twice_the_context_capped_by_memory(context, limit, tokens):
    assert default_pool_tokens(context, 16, 64, limit) == tokens


def test_a_nodes_default_pool_takes_a_quarter_of_its_share():
    assert pool_bytes_limit(16 << 30, 2) == 2 << 30
