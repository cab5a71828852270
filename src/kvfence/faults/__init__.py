"""Known defects as switches, each a mutant of one decision of the protocol.

Nothing on the serving path imports this package unless the operator named a fault and said twice that
the deployment leaks data by it. `CATALOGUE` is data; `faulty_decisions` builds what the cores then ask.
"""

from kvfence.faults.catalogue import CATALOGUE, Fault, Layer, fault_named, lifts_capacity_check
from kvfence.faults.mutants import faulty_decisions

__all__ = ["CATALOGUE", "Fault", "Layer", "fault_named", "faulty_decisions", "lifts_capacity_check"]
