"""Events: costs add up, and a start always says its format."""

import msgspec

from kvfence.report import Cost
from kvfence.report.events import FORMAT
from tests.report.samples import started


def test_costs_add_up():
    one = Cost(requests=1, prompt_tokens=2, completion_tokens=3, seconds=0.5)
    assert one + one == Cost(requests=2, prompt_tokens=4, completion_tokens=6, seconds=1.0)
    assert one + Cost() == one


def test_a_start_always_says_its_format():
    assert msgspec.to_builtins(started())["format"] == FORMAT
