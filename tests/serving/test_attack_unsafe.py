"""What leaks by its operator's wish says so in the header of every answer, the open fence included."""

import msgspec
import pytest
from tests.serving.test_node_config import CONFIGS

from kvfence.serving.node_config import RouterConfig
from kvfence.serving.router_main import unsafe_header

(ROUTER,) = (config for config in CONFIGS if isinstance(config, RouterConfig))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"fence": "off"}, "fence-off"),
        ({"fence": "contract", "faults": ("a/b", "c/d")}, "a/b,c/d"),
        ({"fence": "off", "faults": ("a/b",), "layers_off": ("seal",)}, "fence-off,a/b,without-seal"),
        ({"layers_off": ("seal", "guard")}, "without-seal,without-guard"),
    ],
)
def test_everything_that_is_wrong_by_wish_is_named(changed, named):
    assert unsafe_header(msgspec.structs.replace(ROUTER, **changed)) == (("x-kvfence-unsafe", named),)


@pytest.mark.parametrize("fence", ["contract", "sealed", "paranoid"])
def test_a_fence_that_stands_needs_no_warning(fence):
    assert unsafe_header(msgspec.structs.replace(ROUTER, fence=fence)) == ()
