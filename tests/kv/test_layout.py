import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.kv.layout import SEAL_BYTES, LayerShape, PageLayout
from kvfence.kv.seal import SEAL_DTYPE
from kvfence.protocol.errors import InvariantError, OperatorError

shapes = st.builds(LayerShape, st.integers(1, 8), st.integers(1, 128), st.integers(1, 128))
layouts = st.builds(
    PageLayout,
    st.lists(shapes, min_size=1, max_size=5).map(tuple),
    st.integers(1, 64),
    st.sampled_from(["float32", "bfloat16", "float16"]),
)


@given(layouts)
def test_regions_are_aligned_do_not_overlap_and_hold_their_slots(layout):
    assert all(region.offset % 64 == 0 for region in layout.regions)
    for one, other in itertools.pairwise(layout.regions):
        assert one.offset + one.slot_bytes * layout.page_tokens <= other.offset
    last = layout.regions[-1]
    assert last.offset + last.slot_bytes * layout.page_tokens <= layout.payload_bytes
    assert layout.payload_bytes % 64 == 0
    assert layout.page_bytes == layout.payload_bytes + SEAL_BYTES


def test_offsets_name_k_and_v_of_each_layer():
    layout = PageLayout((LayerShape(3, 64, 64), LayerShape(1, 8, 16)), 16, "bfloat16")
    assert layout.k_offset(0) == 0
    assert layout.v_offset(0) == 16 * 3 * 64 * 2
    assert layout.k_offset(1) == 2 * 16 * 3 * 64 * 2
    assert layout.v_offset(1) == layout.k_offset(1) + 16 * 8 * 2
    assert layout.token_bytes == 2 * (2 * 3 * 64 + 8 + 16)
    with pytest.raises(InvariantError, match="layer 2"):
        layout.k_offset(2)
    with pytest.raises(InvariantError, match="layer -1"):
        layout.v_offset(-1)


def test_the_default_model_has_the_page_that_was_measured():
    layout = PageLayout((LayerShape(3, 64, 64),) * 30, 16, "bfloat16")
    assert layout.token_bytes == 23_040
    assert layout.payload_bytes == 16 * 23_040


@pytest.mark.parametrize(("tokens", "pages"), [(0, 0), (1, 1), (16, 1), (17, 2)])
def test_pages_for_rounds_up(tokens, pages):
    assert PageLayout((LayerShape(1, 1, 1),), 16, "float32").pages_for(tokens) == pages


def test_the_fingerprint_changes_with_every_fact():
    base = PageLayout((LayerShape(3, 64, 64),), 16, "bfloat16")
    others = [
        PageLayout((LayerShape(3, 64, 64),) * 2, 16, "bfloat16"),
        PageLayout((LayerShape(3, 64, 64),), 32, "bfloat16"),
        PageLayout((LayerShape(3, 64, 64),), 16, "float16"),
        PageLayout((LayerShape(3, 64, 63),), 16, "bfloat16"),
    ]
    assert len({layout.fingerprint() for layout in [base, *others]}) == 5
    assert base.fingerprint() == PageLayout((LayerShape(3, 64, 64),), 16, "bfloat16").fingerprint()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((LayerShape(1, 1, 1),), 16, "int8"), "int8"),
        (((LayerShape(1, 1, 1),), 0, "float32"), "0 tokens"),
        (((LayerShape(1, 1, 1),), 5000, "float32"), "5000 tokens"),
        (((), 16, "float32"), "no attention layer"),
        (((LayerShape(0, 1, 1),), 16, "float32"), "KV head"),
    ],
)
def test_facts_of_which_no_page_can_be_built_are_refused(arguments, words):
    with pytest.raises(OperatorError, match=words):
        PageLayout(*arguments)


def test_one_size_of_a_seal():
    assert SEAL_DTYPE.itemsize == SEAL_BYTES
