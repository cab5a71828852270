"""Which decisions the cores of this process are given: the correct ones, unless the operator said otherwise.

This is the one door through which faults come in, and layers are left out. It stays shut unless one was
named; the settings have refused the name already if the operator did not say that it leaks.
"""

from kvfence.kv import FenceLevel
from kvfence.protocol import Decisions, Expectation
from kvfence.protocol.words import IntegrityReason, Manifest


class _NoContract(Decisions):
    """`--fence off`: a closed lease is believed."""

    def manifest_fault(self, manifest: Manifest, expectation: Expectation) -> IntegrityReason | None:  # noqa: ARG002
        """Nothing is compared."""
        return None


def node_decisions(level: FenceLevel, faults: tuple[str, ...], layers_off: tuple[str, ...] = ()) -> Decisions:
    """The decisions for one core. Raises OperatorError for an unknown fault or layer."""
    chosen: type[Decisions] = Decisions
    if faults or layers_off:
        # Never on the path without a named fault.
        from kvfence.faults import faulty_decisions, layer_named  # noqa: PLC0415

        chosen = faulty_decisions(faults, [layer_named(name) for name in layers_off])
    if not level.checks_manifest:
        chosen = type("UnfencedDecisions", (_NoContract, chosen), {})
    return chosen()
