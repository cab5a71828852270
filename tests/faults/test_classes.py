"""Every class of bugs has a fault, or a sentence that says why it cannot."""

import importlib.util

from kvfence.faults import CATALOGUE, ROOT_CAUSES

CLASSES = 18


def test_every_class_has_a_fault_or_says_why_not():
    shown = {fault.root_cause for fault in CATALOGUE.values()}
    absent = {cause.name for cause in ROOT_CAUSES.values() if cause.absent_because is not None}
    assert len(ROOT_CAUSES) == CLASSES
    assert shown | absent == set(ROOT_CAUSES)
    assert not shown & absent


def test_what_is_said_to_be_missing_is_missing():
    assert "no kvfence.kv module" in ROOT_CAUSES["offload-mixup"].absent_because
    for name in ("offload", "tiers", "tier", "store", "disk"):
        assert importlib.util.find_spec(f"kvfence.kv.{name}") is None
