"""Every decision of the protocol that a known fault gets wrong, each one a small method.

The cores ask through `self.decisions`, never inline; correct behaviour lives here. `kvfence.faults`
subclasses it, one mutant an override. It holds no state and takes only plain facts.
"""

from dataclasses import dataclass

from kvfence.protocol.config import pages_for
from kvfence.protocol.words import IntegrityReason, LeaseId, Manifest, Peer, Refusal, RefusalCode


@dataclass(frozen=True, slots=True)
class Expectation:
    """What decode reserved, against which a manifest is held."""

    lease: LeaseId
    writer: Peer
    tokens: int
    pages: int
    token_hash: bytes


class Decisions:
    """The correct decisions."""

    # ------------------------------------------------------------ router
    def admits(self, needed_tokens: int, limit_tokens: int) -> bool:
        """Law 6: the request fits every pool that could serve any attempt of it."""
        return needed_tokens <= limit_tokens

    def accepts_token(self, position: int, expected_position: int, *, is_current_attempt: bool) -> bool:
        """A token is delivered only for the attempt that is alive, and only at its place."""
        return is_current_attempt and position == expected_position

    def aborts_before_next_attempt(self) -> bool:
        """Attempt n+1 is opened only after the abort of n was sent."""
        return True

    # ------------------------------------------------------------ prefill
    def fit_prompt(self, tokens: tuple[int, ...], limit_tokens: int) -> tuple[int, ...] | Refusal:
        """Return the tokens to compute, or a terminal refusal: never a placeholder (law 5)."""
        if len(tokens) > limit_tokens:
            return Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=len(tokens), limit_tokens=limit_tokens)
        return tokens

    def refuses_late_prefill(self, *, lease_is_closed: bool) -> bool:
        """A lease that was closed, or lies below the lowest live one, is never computed or written."""
        return lease_is_closed

    def pins_match(self) -> bool:
        """Law 8: a prefix match pins its pages in the same step."""
        return True

    def publishes(self, *, sealed: bool) -> bool:
        """Law 8: a page is published only after it is sealed."""
        return sealed

    def pages_to_post(self, ready: int, *, last: bool) -> int:  # noqa: ARG002 -- a mutant looks at it
        """Return how many of the `ready` pages are written: all of them."""
        return ready

    def is_written(self, posted_pages: int, pages: int, batches_in_flight: int) -> bool:
        """Law 3: done is said only after the positive completion of every write."""
        return posted_pages == pages and batches_in_flight == 0

    def claims(self, manifest: Manifest) -> Manifest:
        """Return what the writer says it wrote: exactly that."""
        return manifest

    def posts_are_quiet(self, batches_in_flight: int, batches_lost: int) -> bool:
        """Closed may be said: no write is in flight, and none was given up without proof."""
        return batches_in_flight == 0 and batches_lost == 0

    def sources_are_quiet(self, steps: int, batches_reading: int) -> bool:
        """Law 4 on the writer's side: no launched step and no outgoing write reads the pages."""
        return steps == 0 and batches_reading == 0

    def reposts_at_deadline(self) -> bool:
        """A batch past its posting bound is never posted again."""
        return False

    # ------------------------------------------------------------ decode
    def refuses_after_abort(self, *, attempt_is_over: bool) -> bool:
        """An abort closes an attempt even when it arrives first."""
        return attempt_is_over

    def manifest_fault(self, manifest: Manifest, expectation: Expectation) -> IntegrityReason | None:
        """Law 3: the manifest equals the reservation, or this says where it does not."""
        if manifest.lease != expectation.lease or manifest.writer != expectation.writer:
            return IntegrityReason.MANIFEST_WRITER
        if manifest.tokens != expectation.tokens:
            return IntegrityReason.MANIFEST_TOKENS
        if manifest.pages != expectation.pages:
            return IntegrityReason.MANIFEST_PAGES
        if manifest.token_hash != expectation.token_hash:
            return IntegrityReason.MANIFEST_HASH
        if manifest.first_position != expectation.tokens:
            return IntegrityReason.MANIFEST_POSITION
        return None

    def verifies_seals(self) -> bool:
        """Law 3: every page's seal verifies before a row starts."""
        return True

    def may_free(self, steps: int, *, writer_is_quiet: bool) -> bool:
        """Law 4: the writer has closed or is cut, and no launched step is left."""
        return writer_is_quiet and steps == 0

    def deadline_is_quiet(self) -> bool:
        """Law 4: time alone never frees a page."""
        return False

    def lost_is_quiet(self) -> bool:
        """A lost writer may still write: only its cut is proof."""
        return False

    def abort_is_quiet(self) -> bool:
        """An abort says nothing about writes in flight."""
        return False

    def unknown_cut_is_quiet(self) -> bool:
        """A cut that could not be proven proves nothing."""
        return False

    def sets_poison_apart(self) -> bool:
        """A page with a foreign or torn seal is kept until all who could write to it are cut."""
        return True

    def copies_tail(self, tokens: int, page_tokens: int) -> bool:
        """A partly filled last page is copied before anything is appended to it."""
        return pages_for(tokens, page_tokens) * page_tokens != tokens

    # ------------------------------------------------------------ every role
    def speaks_for(self, sender: Peer, expected: Peer) -> bool:
        """Law 10: no message of one incarnation speaks for another."""
        return sender == expected
