"""The faults by name. It is data: the entries stand in files by what goes wrong, the mutants by role.

Several faults can be on together, and layers off: that is how a test shows that each layer alone stops
what the others let through.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from kvfence.faults import entries_lifetime as lifetime
from kvfence.faults import entries_memory as memory
from kvfence.faults import entries_sharing as sharing
from kvfence.faults import entries_transfer as transfer
from kvfence.faults.fault import Fault
from kvfence.faults.layers import Layer
from kvfence.protocol.errors import OperatorError

CATALOGUE: dict[str, Fault] = {
    fault.name: fault
    for group in (
        transfer.REJECTION,
        transfer.COMPLETION,
        lifetime.TRANSFER,
        lifetime.STEPS,
        lifetime.REFERENCES,
        sharing.NAMES,
        sharing.KEYS,
        sharing.PREFIXES,
        memory.MEMORY,
        memory.ROWS,
        memory.ANSWERS,
    )
    for fault in group
}


def fault_named(name: str) -> Fault:
    """The fault of that name. Raises OperatorError with a suggestion."""
    fault = CATALOGUE.get(name)
    if fault is None:
        close = get_close_matches(name, CATALOGUE, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose of {', '.join(CATALOGUE)}"
        raise OperatorError(f"there is no fault {name!r}: {hint} (kvfence faults lists them)")
    return fault


def lifts_capacity_check(names: Iterable[str], layers_off: Iterable[Layer] = ()) -> bool:
    """Whether a deployment like this starts with a context larger than a pool."""
    return Layer.ADMISSION in layers_off or any(fault_named(name).lifts_capacity for name in names)


def sizes_prefill_only(names: Iterable[str]) -> bool:
    """Whether `--pool-tokens` is meant for prefill pools alone, as the incident's was the smaller one."""
    return any(fault_named(name).prefill_pool_only for name in names)
