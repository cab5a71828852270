"""The mutants: each overrides one method of `Decisions` with what a real engine once did.

They are mixed into one class in the order of their names, so that any set of them can be on at once.
"""

from collections.abc import Sequence

from kvfence.faults.catalogue import fault_named
from kvfence.protocol import Decisions, Expectation
from kvfence.protocol.words import IntegrityReason, Manifest, Refusal


class AdmissionUnchecked(Decisions):
    """The configured context is all that is asked."""

    def admits(self, needed_tokens: int, limit_tokens: int) -> bool:  # noqa: ARG002
        """Everything fits."""
        return True


class SplitState(Decisions):
    """The rejection is kept where nobody looks; a placeholder takes the request's place."""

    def fit_prompt(self, tokens: tuple[int, ...], limit_tokens: int) -> tuple[int, ...] | Refusal:
        """One token instead of a refusal."""
        fitted = super().fit_prompt(tokens, limit_tokens)
        return tokens[:1] if isinstance(fitted, Refusal) else fitted


class ManifestUnchecked(Decisions):
    """Complete is complete."""

    def manifest_fault(self, manifest: Manifest, expectation: Expectation) -> IntegrityReason | None:  # noqa: ARG002
        """Nothing is ever wrong."""
        return None


class SealsUnchecked(Decisions):
    """Pages are taken as they are."""

    def verifies_seals(self) -> bool:
        """No."""
        return False


MUTANTS: dict[str, type[Decisions]] = {
    "rejected-continues/admission-unchecked": AdmissionUnchecked,
    "rejected-continues/split-state": SplitState,
    "false-completion/manifest-unchecked": ManifestUnchecked,
    "false-completion/seals-unchecked": SealsUnchecked,
}


def faulty_decisions(names: Sequence[str]) -> type[Decisions]:
    """The class of decisions with these faults on. Raises OperatorError for an unknown name."""
    mutants = tuple(MUTANTS[fault_named(name).name] for name in sorted(set(names)))
    return type("FaultyDecisions", (*mutants, Decisions), {}) if mutants else Decisions
