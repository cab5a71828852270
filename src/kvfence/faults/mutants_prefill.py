"""The prefill node's decisions, got wrong: what it computes, when it says done, when it lets go.

Each class is one fault of the catalogue and overrides the decisions that its entry names. It holds no
state and inherits from `Decisions` alone, so that any set of them can be mixed into one class.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from kvfence.faults.mutants_router import AdmissionUnchecked
from kvfence.protocol import Decisions
from kvfence.protocol.words import Manifest, Refusal, RefusalCode


class Placeholder(tuple[int, ...]):  # noqa: SLOT001 -- a tuple with a field has no slots
    """One token in place of a rejected prompt. That it was rejected stands in a field of its own.

    This is the incident's shape: the rejection is known, in `to_finish`, and whoever comes next asks how
    long the prompt is and not whether it has ended.
    """

    to_finish: Refusal

    @classmethod
    def of(cls, tokens: tuple[int, ...], refusal: Refusal) -> Self:
        """Keep the first token, and the refusal where nobody looks."""
        placeholder = cls(tokens[:1])
        placeholder.to_finish = refusal
        return placeholder


class SplitState(Decisions):
    """The rejection is kept in a second field, and the placeholder's own length says when it is complete."""

    def fit_prompt(self, tokens: tuple[int, ...], limit_tokens: int) -> tuple[int, ...] | Refusal:
        """One token instead of a refusal."""
        if len(tokens) <= limit_tokens:
            return tokens
        refusal = Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=len(tokens), limit_tokens=limit_tokens)
        return Placeholder.of(tokens, refusal)

    def owed_pages(self, reserved: int, computed: int) -> int:  # noqa: ARG002
        """As many as were computed."""
        return computed


class Incident(Decisions):
    """All that came together: no law 6, the configured context promised, and a split state behind it."""

    advertised_tokens = AdmissionUnchecked.advertised_tokens
    fits_node = AdmissionUnchecked.fits_node
    fit_prompt = SplitState.fit_prompt
    owed_pages = SplitState.owed_pages


class ShortTransfer(Decisions):
    """The last page is never sent, and done is said when nothing is in flight."""

    def pages_to_post(self, ready: int, *, last: bool) -> int:
        """One fewer than there are, at the end."""
        return max(0, ready - 1) if last else ready

    def is_written(self, posted_pages: int, pages: int, batches_in_flight: int) -> bool:  # noqa: ARG002
        """Nothing is in flight."""
        return batches_in_flight == 0


class WholeClaimed(Decisions):
    """The same, and the manifest counts the page that was not sent."""

    pages_to_post = ShortTransfer.pages_to_post
    is_written = ShortTransfer.is_written

    def claims(self, manifest: Manifest) -> Manifest:
        """One page more than was posted."""
        return replace(manifest, pages=manifest.pages + 1)


class DoneBeforeWritten(Decisions):
    """Posted is taken for written."""

    def is_written(self, posted_pages: int, pages: int, batches_in_flight: int) -> bool:  # noqa: ARG002
        """Everything was posted."""
        return posted_pages == pages


class FailedWriteCounts(Decisions):
    """The transport's error is read as an end, and an end as success."""

    def failed_write_counts(self) -> bool:
        """Yes."""
        return True


class SourcesFreedEarly(Decisions):
    """Source pages are given back while the network still reads them."""

    def sources_are_quiet(self, steps: int, batches_reading: int) -> bool:  # noqa: ARG002
        """No step is left."""
        return steps == 0


class SourcesFreedUnderStep(Decisions):
    """Source pages are given back while a launched chunk still writes them."""

    def sources_are_quiet(self, steps: int, batches_reading: int) -> bool:  # noqa: ARG002
        """No write is left."""
        return batches_reading == 0


class ClosedBeforeQuiet(Decisions):
    """Closed is said as soon as somebody asks: a close that overtakes the bytes."""

    def posts_are_quiet(self, batches_in_flight: int, batches_lost: int) -> bool:  # noqa: ARG002
        """Always."""
        return True


class RepostedBatch(Decisions):
    """A batch past its bound is posted a second time, and the first copy is waited for no more."""

    def reposts_at_deadline(self) -> bool:
        """Yes."""
        return True


class LatePrefill(Decisions):
    """A lease that was promised to be quiet is computed and written when its Prefill comes."""

    def refuses_late_prefill(self, *, lease_is_closed: bool) -> bool:  # noqa: ARG002
        """Nothing is refused."""
        return False


class FirstTokenSlot(Decisions):
    """First tokens stand in one slot that all leases of the node share."""

    def first_token(self, own: int, slots: Sequence[int]) -> int:
        """Whoever wrote last."""
        return slots[-1] if slots else own


class DirtyUnusedSlots(Decisions):
    """A partly filled page leaves with whatever stood in the rest of it."""

    def zeroes_unused_slots(self) -> bool:
        """No."""
        return False
