"""The experiments of a run, a small file each; `in_order` lists them."""

from kvfence.check.scenarios.in_order import SCENARIOS

__all__ = ["SCENARIOS"]
