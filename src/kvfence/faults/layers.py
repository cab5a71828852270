"""The layers of the fence that detect or refuse, each as a switch: what a deployment does without one.

A layer that is off is no fault: with nothing else wrong it is never missed. Tests and the replay switch
layers off to see which one stops a fault. The quarantine is none of them: it prevents, and without it
nothing else has to be wrong for a leak.
"""

from collections.abc import Collection
from difflib import get_close_matches
from enum import Enum, unique

from kvfence.faults.mutants_router import AdmissionUnchecked
from kvfence.protocol import Decisions, Expectation
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import IntegrityReason, Manifest, Refusal


@unique
class Layer(Enum):
    """What can catch a fault. The first five can be switched off."""

    ADMISSION = "admission"  # the router promises and places what every pool holds
    REFUSAL = "refusal"  # a node refuses what it cannot hold
    MANIFEST = "manifest"  # a closed lease is compared with its reservation
    SEAL = "seal"  # every page's seal is verified at hand-over
    GUARD = "guard"  # block tables are compared before and after each step
    QUARANTINE = "quarantine"  # pages wait for their writer, and are shown while they wait
    EXPLORER = "explorer"
    SIMULATOR = "simulator"
    OUTSIDE = "outside check"


class _AdmissionOff(Decisions):
    advertised_tokens = AdmissionUnchecked.advertised_tokens
    fits_node = AdmissionUnchecked.fits_node


class _RefusalOff(Decisions):
    """A prompt is cut to what fits, and complete when that is written."""

    def fit_prompt(self, tokens: tuple[int, ...], limit_tokens: int) -> tuple[int, ...] | Refusal:
        return tokens[:limit_tokens]

    def owed_pages(self, reserved: int, computed: int) -> int:  # noqa: ARG002
        return computed

    def fits_pool(self, needed_tokens: int, pool_tokens: int) -> bool:  # noqa: ARG002
        return True


class _ManifestOff(Decisions):
    def manifest_fault(self, manifest: Manifest, expectation: Expectation) -> IntegrityReason | None:  # noqa: ARG002
        return None


class _SealOff(Decisions):
    def verifies_seals(self) -> bool:
        return False


class _GuardOff(Decisions):
    def guards_steps(self) -> bool:
        return False


SWITCHES: dict[Layer, type[Decisions]] = {
    Layer.ADMISSION: _AdmissionOff,
    Layer.REFUSAL: _RefusalOff,
    Layer.MANIFEST: _ManifestOff,
    Layer.SEAL: _SealOff,
    Layer.GUARD: _GuardOff,
}
SWITCH_NAMES = tuple(layer.value for layer in SWITCHES)


def layer_named(name: str) -> Layer:
    """The layer of that name, which can be switched off. Raises OperatorError with a suggestion."""
    if name not in SWITCH_NAMES:
        close = get_close_matches(name, SWITCH_NAMES, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise OperatorError(
            f"{name!r} is no layer that can be switched off: {hint}choose of {', '.join(SWITCH_NAMES)}"
        )
    return Layer(name)


def switched_off(layers_off: Collection[Layer]) -> tuple[type[Decisions], ...]:
    """The classes to mix in for these layers. Raises OperatorError for one that has no switch."""
    return tuple(SWITCHES[layer_named(layer.value)] for layer in Layer if layer in layers_off)
