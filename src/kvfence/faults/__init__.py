"""Known defects as switches, each a mutant of a few decisions.

Nothing on the serving path imports this package unless the operator named a fault, or a layer to leave
out, and said twice that the deployment leaks data by it. `CATALOGUE` is data; `faulty_decisions` builds
what the cores then ask.
"""

from kvfence.faults.bugs import BUGS
from kvfence.faults.catalogue import CATALOGUE, fault_named, lifts_capacity_check, sizes_prefill_only
from kvfence.faults.classes import ROOT_CAUSES, RootCause
from kvfence.faults.fault import Bug, Fault, Ground, Harm
from kvfence.faults.layers import SWITCH_NAMES, SWITCHES, Layer, layer_named
from kvfence.faults.mutants import faulty_decisions

__all__ = [
    "BUGS",
    "CATALOGUE",
    "ROOT_CAUSES",
    "SWITCHES",
    "SWITCH_NAMES",
    "Bug",
    "Fault",
    "Ground",
    "Harm",
    "Layer",
    "RootCause",
    "fault_named",
    "faulty_decisions",
    "layer_named",
    "lifts_capacity_check",
    "sizes_prefill_only",
]
