"""A pool is looked into from outside, for reading alone, by the memory file that a process holds."""

import subprocess
import sys
from contextlib import contextmanager
from subprocess import PIPE

import numpy as np
import pytest

from kvfence.kv import LayerShape, PageLayout, Pool, SealKind, stamp_unwritten
from kvfence.protocol.errors import InternalError, InvariantError
from kvfence.protocol.words import LeaseId, PageRef
from kvfence.replay.pool_view import PoolView, layout_of

LAYOUT = PageLayout((LayerShape(kv_heads=1, k_dim=8, v_dim=8),) * 2, 4, "float32")
LEASE = LeaseId(9, 3)


@pytest.fixture
def pool():
    made = Pool.create(LAYOUT, 3)
    yield made
    made.close()


@pytest.fixture
def view(pool):
    with PoolView(pool.fd, LAYOUT) as opened:
        yield opened


def fill(pool, page, slot, value):
    """Write one slot in every region."""
    payload = pool.payload(page)
    for region in LAYOUT.regions:
        start = region.offset + slot * region.slot_bytes
        payload[start : start + region.slot_bytes] = value


def test_slots_are_told_apart_by_their_bytes(pool, view):
    fill(pool, 0, 1, 7)
    fill(pool, 2, 3, 7)
    fill(pool, 2, 0, 8)
    seen = view.snapshot()
    assert view.pages == 3
    assert seen.digests[0][0] is None
    assert seen.digests[0][1] == seen.digests[2][3] is not None
    assert seen.digests[2][0] not in (None, seen.digests[2][3])
    assert len(seen.written) == 2


def test_a_slot_differs_when_only_its_last_region_does(pool, view):
    fill(pool, 0, 1, 7)
    before = view.snapshot().digests[0][1]
    last = LAYOUT.regions[-1]
    pool.payload(0)[last.offset + last.slot_bytes] = 1
    assert view.snapshot().digests[0][1] != before


def test_leases_are_read_from_the_trailers(pool, view):
    assert view.snapshot().leases == frozenset()
    stamp_unwritten(pool, LEASE, [PageRef(1, 1)])
    assert view.snapshot().leases == {LEASE}
    assert view.trailers()["kind"].tolist() == [SealKind.BLANK, SealKind.UNWRITTEN, SealKind.BLANK]


def test_a_snapshot_stays_as_it_was(pool, view):
    before = view.snapshot()
    fill(pool, 0, 0, 1)
    stamp_unwritten(pool, LEASE, [PageRef(0, 1)])
    assert before.written == before.leases == frozenset()


def test_the_view_cannot_write(view):
    with pytest.raises(ValueError, match="read-only"):
        view._rows[0, 0] = 1


HOLDER = """
import sys
from kvfence.kv import LayerShape, PageLayout, Pool
pool = Pool.create(PageLayout((LayerShape(kv_heads=1, k_dim=8, v_dim=8),) * 2, 4, "float32"), 3)
pool.payload(1)[5] = 1
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def process(program):
    """A process of its own, which holds what the program made until it is told to end."""
    with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        yield child.pid
        child.communicate("")


def test_the_pool_of_a_process_is_found():
    with process(HOLDER) as pid, PoolView.of_process(pid, LAYOUT) as view:
        assert np.any(view._rows)


def test_what_is_no_pool_of_that_layout_is_refused(pool):
    other = PageLayout((LayerShape(kv_heads=1, k_dim=8, v_dim=8),) * 3, 4, "float32")
    with pytest.raises(InternalError, match="whole number of pages"):
        PoolView(pool.fd, other)


def test_a_process_without_a_pool_or_out_of_reach_is_said_to_be_so():
    without = "import sys; print('ready', flush=True); sys.stdin.read()"
    with process(without) as pid, pytest.raises(InvariantError, match="holds no pool"):
        PoolView.of_process(pid, LAYOUT)
    with pytest.raises(InternalError, match="/proc"):
        PoolView.of_process(2**22 + 1, LAYOUT)


def test_the_layout_comes_from_the_models_config():
    config = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}
    assert layout_of(config, page_tokens=4, dtype="float32").layers == (LayerShape(4, 8, 8),) * 2
    grouped = {**config, "num_key_value_heads": 1, "head_dim": 16}
    assert layout_of(grouped, page_tokens=4, dtype="float32").layers == (LayerShape(1, 16, 16),) * 2
