import fcntl
import os
import resource
from pathlib import Path

import numpy as np
import pytest
from tests.kv.pools import LAYOUT, PAGE_TOKENS, make_pool

from kvfence.kv.layout import LayerShape, PageLayout
from kvfence.kv.pool import SIZE_SEALS, Pool
from kvfence.protocol.errors import InvariantError, OperatorError


def test_a_pool_has_its_pages_a_zeroed_padding_page_and_its_size_from_the_buffer():
    pool = make_pool(5)
    assert pool.pages == 5
    assert pool.padding_page == 5
    assert pool.tokens == 5 * PAGE_TOKENS
    assert pool.buffer.size == os.fstat(pool.fd).st_size == 6 * LAYOUT.page_bytes
    assert not pool.page(pool.padding_page).any()


def test_the_memory_is_there_its_size_is_sealed_and_it_is_not_inherited():
    pool = make_pool(3)
    assert os.fstat(pool.fd).st_blocks * 512 >= pool.buffer.size
    assert fcntl.fcntl(pool.fd, fcntl.F_GET_SEALS) & SIZE_SEALS == SIZE_SEALS
    assert not os.get_inheritable(pool.fd)
    with pytest.raises(OSError, match="not permitted"):
        os.ftruncate(pool.fd, 0)


def test_a_forked_child_does_not_have_the_mapping():
    pool = make_pool(3)
    address = pool.buffer.ctypes.data

    def mapped(pid: int) -> bool:
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        return any(line.startswith(f"{address:x}-") for line in maps)

    assert mapped(os.getpid())
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, b"y" if mapped(os.getpid()) else b"n")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read_end, 1) == b"n"
    os.close(read_end)
    os.close(write_end)


def test_views_of_a_page_are_writable_and_lie_where_the_layout_says():
    pool = make_pool(4)
    pool.payload(2)[:] = 1
    pool.trailer(2)[:] = 2
    assert pool.page(2).sum() == LAYOUT.payload_bytes + 2 * 64
    assert not pool.page(1).any()
    assert not pool.page(3).any()
    assert (pool.seals[2] == 0x0202020202020202).all()
    assert (pool.headers[2] == 0x0202020202020202).all()
    assert pool.trailers[2]["epoch"] == 0x0202020202020202
    pool.trailers[3]["sequence"] = 9
    assert pool.headers[3].tolist() == [0, 0, 9, 0]


@pytest.mark.parametrize("page", [-1, 5])
def test_a_page_outside_of_the_pool_is_no_page(page):
    pool = make_pool(4)
    for reach in (pool.page, pool.payload, pool.trailer, lambda index: pool.zero_slots(index, 0)):
        with pytest.raises(InvariantError, match=f"page {page} "):
            reach(page)
    assert pool.page(4).size == LAYOUT.page_bytes


@pytest.mark.parametrize("first_slot", range(PAGE_TOKENS + 1))
def test_zeroing_slots_keeps_those_before_and_clears_those_from_there_on(first_slot):
    pool = make_pool(3)
    pool.payload(1)[:] = 1
    pool.trailer(1)[:] = 1
    pool.zero_slots(1, first_slot)
    assert pool.trailer(1).all()
    for region in LAYOUT.regions:
        slots = pool.payload(1)[region.offset : region.offset + region.slot_bytes * PAGE_TOKENS]
        slots = slots.reshape(PAGE_TOKENS, region.slot_bytes)
        assert slots[:first_slot].all()
        assert not slots[first_slot:].any()


def test_no_slot_after_the_last_can_be_the_first_to_zero():
    with pytest.raises(InvariantError, match="outside a page"):
        make_pool(1).zero_slots(0, PAGE_TOKENS + 1)


def test_attach_maps_the_same_bytes():
    pool = make_pool(3)
    other = Pool.attach(os.dup(pool.fd), LAYOUT, 3)
    pool.page(1)[:] = 5
    assert (other.page(1) == 5).all()
    assert other.pages == 3


def test_attach_refuses_another_size_and_a_buffer_that_is_none():
    pool = make_pool(3)
    with pytest.raises(OperatorError, match="a pool of 4 pages"):
        Pool.attach(pool.fd, LAYOUT, 4)
    other_layout = PageLayout((LayerShape(1, 2, 3),), PAGE_TOKENS, "float32")
    with pytest.raises(OperatorError, match="same model"):
        Pool.attach(pool.fd, other_layout, 3)
    growing = os.memfd_create("growing")
    os.ftruncate(growing, pool.buffer.size)
    with pytest.raises(OperatorError, match="change its size"):
        Pool.attach(growing, LAYOUT, 3)
    os.close(growing)


def test_attach_refuses_an_ordinary_file(tmp_path):
    path = tmp_path / "pool"
    path.write_bytes(bytes(4 * LAYOUT.page_bytes))
    with path.open("r+b") as file, pytest.raises(OperatorError, match="change its size"):
        Pool.attach(file.fileno(), LAYOUT, 3)


def test_a_pool_larger_than_the_memory_is_refused_with_both_numbers():
    with pytest.raises(OperatorError, match=r"4 tokens \(1 pages\).*only 10 bytes.*--pool-tokens"):
        Pool.create(LAYOUT, 1, available_bytes=10)
    with pytest.raises(OperatorError, match=r"only .* bytes are available"):
        Pool.create(LAYOUT, 10**15)


def test_what_the_system_refuses_is_an_operators_error_and_leaves_no_file_open():
    before = len(list(Path("/proc/self/fd").iterdir()))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LAYOUT.page_bytes, limits[1]))
    try:
        with pytest.raises(OperatorError, match="the system said: File too large"):
            Pool.create(LAYOUT, 4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_empty_pool_is_refused():
    with pytest.raises(OperatorError, match="--pool-tokens"):
        Pool.create(LAYOUT, 0)


def test_closing_gives_the_file_up_and_keeps_views_that_are_still_used():
    pool = make_pool(2)
    view = pool.payload(0)
    pool.close()
    pool.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(pool.fd)
    view[:] = 1
    assert np.all(view == 1)
    assert not hasattr(pool, "buffer")
