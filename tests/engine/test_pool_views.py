"""Views show exactly the regions of the pool, and write through to its bytes."""

import numpy as np
import pytest
import torch

from kvfence.engine.pool_views import buffer_views, pool_views
from kvfence.kv.layout import LayerShape, PageLayout
from kvfence.kv.pool import Pool
from kvfence.protocol.errors import InvariantError

ODD = PageLayout((LayerShape(1, 3, 5), LayerShape(2, 8, 8)), 4, "float32")


def test_a_write_through_a_view_lands_in_its_region_and_nowhere_else():
    pool = Pool.create(ODD, 3)
    views = pool_views(pool)
    views.v[0][2, 1, 0] = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    page = pool.payload(2).view(np.float32)
    start = ODD.v_offset(0) // 4 + 5
    assert page[start : start + 5].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert np.count_nonzero(pool.buffer.view(np.float32)) == 5
    pool.close()


def test_regions_do_not_overlap_one_another_or_the_seal():
    rows = torch.zeros(2 * ODD.page_bytes, dtype=torch.uint8)
    views = buffer_views(rows, ODD)
    for mark, view in enumerate((*views.k, *views.v), start=1):
        assert not view.any()
        view.fill_(mark)
    assert not rows.view(2, -1)[:, ODD.payload_bytes :].any()
    assert [float(view.amin()) == float(view.amax()) for view in (*views.k, *views.v)] == [True] * 4


def test_the_last_row_is_the_padding_page():
    pool = Pool.create(ODD, 3)
    views = pool_views(pool)
    assert views.padding_page == pool.padding_page == 3
    assert views.k[1].shape == (4, 4, 2, 8)
    pool.close()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_every_dtype(dtype):
    layout = PageLayout((LayerShape(2, 4, 4),), 2, dtype)
    views = buffer_views(torch.zeros(3 * layout.page_bytes, dtype=torch.uint8), layout)
    assert str(views.k[0].dtype) == f"torch.{dtype}"


def test_a_buffer_that_is_no_whole_number_of_pages_is_an_error():
    with pytest.raises(InvariantError):
        buffer_views(torch.zeros(ODD.page_bytes + 1, dtype=torch.uint8), ODD)
