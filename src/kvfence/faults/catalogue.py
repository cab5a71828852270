"""The faults by name: which decision each changes, what it stands for, and which layer catches it.

A fault changes one decision. Several can be switched on together: that is how a test shows that each
layer alone stops what the others let through.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, unique

from kvfence.protocol.errors import OperatorError


@unique
class Layer(Enum):
    """What can catch a fault."""

    ADMISSION = "admission"
    REFUSAL = "refusal"
    MANIFEST = "manifest"
    SEAL = "seal"


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry. `root_cause` is the class of public bugs that it re-creates."""

    name: str
    root_cause: str
    decision: str
    what: str
    caught_by: tuple[Layer, ...]


CATALOGUE: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            name="rejected-continues/admission-unchecked",
            root_cause="rejected-continues",
            decision="admits",
            what="the router takes every prompt up to the configured context, whatever the pools hold",
            caught_by=(Layer.REFUSAL,),
        ),
        Fault(
            name="rejected-continues/split-state",
            root_cause="rejected-continues",
            decision="fit_prompt",
            what="prefill replaces a prompt that it rejects by a one-token placeholder and goes on",
            caught_by=(Layer.ADMISSION, Layer.MANIFEST, Layer.SEAL),
        ),
        Fault(
            name="false-completion/manifest-unchecked",
            root_cause="false-completion",
            decision="manifest_fault",
            what="decode believes that a closed lease was written, whatever its manifest says",
            caught_by=(Layer.SEAL,),
        ),
        Fault(
            name="false-completion/seals-unchecked",
            root_cause="false-completion",
            decision="verifies_seals",
            what="decode starts without looking at the seals of the pages",
            caught_by=(Layer.MANIFEST,),
        ),
    )
}

CAPACITY_FAULTS = frozenset({"rejected-continues/admission-unchecked"})


def fault_named(name: str) -> Fault:
    """The fault of that name. Raises OperatorError with a suggestion."""
    fault = CATALOGUE.get(name)
    if fault is None:
        close = get_close_matches(name, CATALOGUE, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise OperatorError(f"there is no fault {name!r}: {hint}choose of {', '.join(CATALOGUE)}")
    return fault


def lifts_capacity_check(names: Iterable[str]) -> bool:
    """Whether a deployment with these faults starts with a context larger than a pool."""
    return not CAPACITY_FAULTS.isdisjoint(names)
