"""Figures of a node: counters, gauges, and the bound on how many there are."""

from enum import Enum

from kvfence.serving.stats import KEYS_MAX, NodeStats, parse_stat_key, stat_key

NOTHING = {"figures_dropped_total": 0}


class Why(Enum):
    FULL = "full"
    LATE = "late"


def test_counters_add_up_and_gauges_are_replaced():
    stats = NodeStats()
    stats.add("refusals_total", reason="busy")
    stats.add("refusals_total", 2, reason="busy")
    stats.set("pool_tokens", 7)
    stats.set("pool_tokens", 5)
    assert stats.snapshot() == {"refusals_total|reason=busy": 3, "pool_tokens": 5, **NOTHING}


def test_a_counter_begins_at_zero_for_each_reason_and_loses_nothing_by_it():
    stats = NodeStats()
    stats.add("refusals_total", reason="full")
    stats.begin("refusals_total", reasons=Why)
    stats.begin("steps_total")
    assert stats.snapshot() == {
        "refusals_total|reason=full": 1,
        "refusals_total|reason=late": 0,
        "steps_total": 0,
        **NOTHING,
    }


def test_a_snapshot_is_a_copy():
    stats = NodeStats()
    stats.snapshot()["pool_tokens"] = 1
    assert stats.snapshot() == NOTHING


def test_the_table_is_bounded_and_says_how_much_found_no_room():
    stats = NodeStats()
    for number in range(KEYS_MAX):
        stats.add("x_total", what=str(number))
    stats.add("x_total", what="one more")
    stats.add("x_total", what="0")
    snapshot = stats.snapshot()
    assert (snapshot["x_total|what=0"], snapshot["figures_dropped_total"]) == (2, 1)
    assert "x_total|what=one more" not in snapshot


def test_keys_are_read_back_as_they_were_made():
    for name, labels in (("a", {}), ("a", {"state": "free"}), ("a", {"x": "1", "b": "2"})):
        assert parse_stat_key(stat_key(name, labels)) == (name, labels)
    assert stat_key("a", {"x": "1", "b": "2"}) == stat_key("a", {"b": "2", "x": "1"})
