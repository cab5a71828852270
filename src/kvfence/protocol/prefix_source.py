"""What PrefillCore needs of a prefix index, and the index that never has anything.

The core pins and unpins in the ledger, in the same step as the match; the index only knows which
pages hold which tokens of which domain. It does not own pages and never changes the ledger.
"""

from collections.abc import Sequence
from typing import Protocol

from kvfence.protocol.words import PageRef


class PrefixSource(Protocol):
    """An index of sealed pages by domain and tokens."""

    def match(self, domain: str, tokens: Sequence[int]) -> tuple[int, ...]:
        """Pages of the longest known run of full pages; at least one token is left to compute."""
        ...

    def publish(self, domain: str, tokens: Sequence[int], pages: Sequence[PageRef]) -> tuple[int, ...]:
        """Offer sealed pages that hold `tokens` from the first on (`len(pages)` full pages).

        Return the pages that the index took: those whose place no other page had already. Only these
        outlive their lease.
        """
        ...

    def evict(self, n: int) -> tuple[int, ...]:
        """Forget up to `n` least recently used pages that are CACHED in the ledger; return them."""
        ...

    def forget(self, page: int) -> None:
        """Forget one page, and what can be reached only through it."""
        ...


class NoPrefix:
    """A prefix index that takes nothing and finds nothing."""

    def match(self, domain: str, tokens: Sequence[int]) -> tuple[int, ...]:  # noqa: ARG002 -- the null one
        """Find nothing."""
        return ()

    def publish(
        self,
        domain: str,  # noqa: ARG002 -- the null one
        tokens: Sequence[int],  # noqa: ARG002
        pages: Sequence[PageRef],  # noqa: ARG002
    ) -> tuple[int, ...]:
        """Take nothing."""
        return ()

    def evict(self, n: int) -> tuple[int, ...]:  # noqa: ARG002 -- the null one
        """Have nothing to give."""
        return ()

    def forget(self, page: int) -> None:
        """Have nothing to forget."""
