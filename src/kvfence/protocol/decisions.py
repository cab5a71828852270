"""Every decision that a known fault gets wrong, each one a small method.

The cores ask through `self.decisions`, never inline; so do the index, the nodes and the executors for what
is theirs. Correct behaviour lives here. `kvfence.faults` subclasses it, one mutant an override. It holds no
state and takes only plain facts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

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
    def needed_tokens(self, prompt_tokens: int, max_tokens: int) -> int:
        """Law 6: what the last attempt of a request may need, if it is preempted just before its end."""
        return prompt_tokens + max_tokens

    def advertised_tokens(self, configured_tokens: int, smallest_pool_tokens: int) -> int:
        """Law 6: the largest request that is promised fits the context and every pool."""
        return min(configured_tokens, smallest_pool_tokens)

    def admits(self, needed_tokens: int, limit_tokens: int) -> bool:
        """Law 6: the request is no larger than what is promised."""
        return needed_tokens <= limit_tokens

    def fits_node(self, needed_tokens: int, pool_tokens: int) -> bool:
        """Law 6: an attempt is placed only where all that the request may need fits."""
        return needed_tokens <= pool_tokens

    def sharing_domain(self, domain: str) -> str:
        """Law 8: prefix pages are shared within the tenant's own domain."""
        return domain

    def accepts_token(self, position: int, expected_position: int, *, is_current_attempt: bool) -> bool:
        """A token is delivered only for the attempt that is alive, and only at its place."""
        return is_current_attempt and position == expected_position

    def aborts_before_next_attempt(self) -> bool:
        """Attempt n+1 is opened only after the abort of n was sent."""
        return True

    def addressee(self, request: int, live: Iterable[int]) -> int:  # noqa: ARG002 -- a mutant looks at it
        """Return the request whose client is given a token: the one it was made for.

        `live` are the requests that have not ended, the newest last.
        """
        return request

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

    def prefix_domain(self, domain: str) -> str:
        """Law 8: the domain goes into the key of a prefix page, and is compared on a hit."""
        return domain

    def prefix_digest(self, data: bytes) -> bytes:
        """Law 8: keys of prefix pages are collision-resistant."""
        return sha256(data).digest()

    def chains_prefix(self) -> bool:
        """Law 8: the key of a page covers every token before it too."""
        return True

    def compares_prefix(self) -> bool:
        """Law 8: a hit compares domain, tokens and the page before it, not only the key."""
        return True

    def zeroes_unused_slots(self) -> bool:
        """Law 2: the writer zeroes the unused slots of a page before it leaves."""
        return True

    def pages_to_post(self, ready: int, *, last: bool) -> int:  # noqa: ARG002 -- a mutant looks at it
        """Return how many of the `ready` pages are written: all of them."""
        return ready

    def owed_pages(self, reserved: int, computed: int) -> int:  # noqa: ARG002 -- a mutant looks at it
        """Law 3: a lease is complete when what decode reserved is written, not what was computed."""
        return reserved

    def is_written(self, posted_pages: int, pages: int, batches_in_flight: int) -> bool:
        """Law 3: done is said only after the positive completion of every write."""
        return posted_pages == pages and batches_in_flight == 0

    def failed_write_counts(self) -> bool:
        """Tell whether a batch that the transport gave up counts as written: it does not."""
        return False

    def first_token(self, own: int, slots: Sequence[int]) -> int:  # noqa: ARG002 -- a mutant looks at it
        """Return the first token that goes into a manifest: the lease's own.

        `slots` are the first tokens of all leases on the node that have one, the newest last.
        """
        return own

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
    def fits_pool(self, needed_tokens: int, pool_tokens: int) -> bool:
        """Law 6, asked again by decode: what can outgrow its pool is refused."""
        return needed_tokens <= pool_tokens

    def lease_number(self, next_sequence: int, live: Collection[int]) -> int:  # noqa: ARG002 -- a mutant's
        """Law 9: a lease gets a number that no lease of this incarnation ever had."""
        return next_sequence

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

    def illegal_is_quiet(self) -> bool:
        """An event that should not have come says nothing about writes in flight."""
        return False

    def asked_writer(self, writer: Peer, newest: Peer | None) -> Peer:  # noqa: ARG002 -- a mutant looks at it
        """Law 10: the incarnation that holds a lease is asked to close it, not the newest of its node."""
        return writer

    def asks_again(self) -> bool:
        """Law 11: Close is asked until it is answered, for a message can be lost."""
        return True

    def sets_poison_apart(self) -> bool:
        """A page with a foreign or torn seal is kept until all who could write to it are cut."""
        return True

    def copies_tail(self, tokens: int, page_tokens: int) -> bool:
        """A partly filled last page is copied before anything is appended to it."""
        return pages_for(tokens, page_tokens) * page_tokens != tokens

    def zeroes_added_pages(self) -> bool:
        """Law 2: decode zeroes what it adds, for masked slots are read all the same."""
        return True

    def adopts_old_pool(self) -> bool:
        """Law 10: a decode node that comes back has a new pool; its predecessor's is dropped."""
        return False

    # ------------------------------------------------------------ steps
    def guards_steps(self) -> bool:
        """Law 1: block tables are compared with owner records before and after each step."""
        return True

    def padding_page(self, reserved: int) -> int:
        """Return the page that stands where a row has none: the reserved one, which is never leased."""
        return reserved

    def table_row(self, row: int, rows: int) -> int:  # noqa: ARG002 -- a mutant looks at it
        """Return whose block table the row of a step reads and writes: its own."""
        return row

    # ------------------------------------------------------------ every role
    def speaks_for(self, sender: Peer, expected: Peer) -> bool:
        """Law 10: no message of one incarnation speaks for another."""
        return sender == expected


CORRECT: Final = Decisions()
