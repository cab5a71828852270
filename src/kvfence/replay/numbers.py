"""Act 1, the numbers: what the page accounting says of a context that is longer than the pool.

Rules it keeps: nothing that was published is a constant of an answer. The published sizes go in, a real
`PageLedger` is asked what it can lease, and the published figures stand beside what comes out, so that a
difference shows. The same code answers "what if" for any other sizes.

It knows no processes and no model; acts 2 to 4 run those.
"""

from dataclasses import dataclass

from kvfence.protocol import PageLedger, pages_for
from kvfence.protocol.errors import OperatorError, invariant, unreachable

CONTEXT_TOKENS = 1_048_576
POOL_TOKENS = 681_280
PAGE_TOKENS = 16
FIXED_POOL_TOKENS = 2_040_000  # published as about 2.04 million; other contexts get the same proportion

TOKENS_MAX = 1 << 26  # more than any model has
MILLION = 1_000_000
PAGES_MAX = 1 << 22  # of one ledger: seconds
PAGE_TOKENS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the accounting is asked about; by default the incident's."""

    context_tokens: int = CONTEXT_TOKENS
    pool_tokens: int = POOL_TOKENS
    page_tokens: int = PAGE_TOKENS

    def __post_init__(self) -> None:
        """Raise OperatorError for sizes of which there is nothing to say."""
        for what, flag, value, most in (
            ("a context", "--context-tokens", self.context_tokens, TOKENS_MAX),
            ("a pool", "--pool-tokens", self.pool_tokens, TOKENS_MAX),
            ("a page", "--page-tokens", self.page_tokens, PAGE_TOKENS_MAX),
        ):
            if not 1 <= value <= most:
                raise OperatorError(
                    f"{what} of {value:,} tokens is not possible: choose {flag} from 1 to {most:,}"
                )
        pages = max(self.pool_tokens, 2 * self.context_tokens) // self.page_tokens
        if pages > PAGES_MAX:
            raise OperatorError(
                f"pages of {self.page_tokens:,} tokens make {pages:,} of them, more than the {PAGES_MAX:,} "
                "that a ledger is tried with: raise --page-tokens, or lower --pool-tokens or --context-tokens"
            )
        if self.pool_tokens < self.page_tokens:
            raise OperatorError(
                f"a pool of {self.pool_tokens:,} tokens has no whole page of {self.page_tokens:,}: "
                "raise --pool-tokens or lower --page-tokens"
            )

    @property
    def are_published(self) -> bool:
        """Whether these are the incident's own sizes."""
        return self == Sizes()


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure as the accounting makes it, beside what was published (None: nothing, or other sizes)."""

    what: str
    computed: str
    published: str | None

    @property
    def agrees(self) -> bool:
        """Whether it is what was published, where something was."""
        return self.published in (None, self.computed)


@dataclass(frozen=True, slots=True)
class Accounting:
    """What follows from the sizes. `largest_*` are the longest prompts that the pools' ledgers lease."""

    sizes: Sizes
    pool_pages: int
    context_pages: int
    largest_prefill_tokens: int
    largest_decode_tokens: int
    fixed_pool_tokens: int
    largest_fixed_tokens: int

    @property
    def band_tokens(self) -> int:
        """How many lengths of a prompt decode reserves for and prefill can never hold."""
        return max(0, self.largest_decode_tokens - self.largest_prefill_tokens)

    @property
    def pool_percent(self) -> float:
        """The pool as a share of the context."""
        return 100 * self.largest_prefill_tokens / self.sizes.context_tokens

    @property
    def fixed_factor(self) -> float:
        """The fixed pool as a multiple of the context."""
        return self.fixed_pool_tokens / self.sizes.context_tokens

    @property
    def fixed_band_tokens(self) -> int:
        """The band that the fixed pool leaves."""
        return max(0, self.largest_decode_tokens - self.largest_fixed_tokens)


def account(sizes: Sizes) -> Accounting:
    """Ask real ledgers of these sizes what they lease."""
    pool_pages = sizes.pool_tokens // sizes.page_tokens
    context_pages = pages_for(sizes.context_tokens, sizes.page_tokens)
    fixed_pages = pages_for(FIXED_POOL_TOKENS * sizes.context_tokens // CONTEXT_TOKENS, sizes.page_tokens)
    decode = largest_prompt_tokens(context_pages, sizes)
    return Accounting(
        sizes=sizes,
        pool_pages=pool_pages,
        context_pages=context_pages,
        largest_prefill_tokens=largest_prompt_tokens(pool_pages, sizes),
        largest_decode_tokens=decode,
        fixed_pool_tokens=fixed_pages * sizes.page_tokens,
        largest_fixed_tokens=largest_prompt_tokens(fixed_pages, sizes),
    )


def largest_prompt_tokens(pool_pages: int, sizes: Sizes) -> int:
    """Return the longest prompt, up to the context, that a ledger of so many pages leases.

    The length is where the free pages end; that it is leased, and one token more is not, the ledger says.
    """
    ledger = PageLedger(pool_pages)
    tokens = min(sizes.context_tokens, ledger.free_pages * sizes.page_tokens)
    leased = ledger.lease(pages_for(tokens, sizes.page_tokens), sequence=1)
    if leased is None:
        unreachable(f"{pool_pages} free pages hold {tokens} tokens")
    ledger.close(leased)
    ledger.free(leased)
    if tokens < sizes.context_tokens:
        longer = ledger.lease(pages_for(tokens + 1, sizes.page_tokens), sequence=2)
        invariant(longer is None, f"{pool_pages} pages do not hold {tokens + 1} tokens")
    return tokens


def figures(accounting: Accounting) -> tuple[Figure, ...]:
    """The published figures, computed; with other sizes the same ones without anything beside them."""
    sizes = accounting.sizes

    def figure(what: str, computed: str, published: str) -> Figure:
        return Figure(what, computed, published if sizes.are_published else None)

    return (
        figure("context window, tokens", f"{accounting.largest_decode_tokens:,}", "1,048,576"),
        figure("prefill pool, tokens", f"{accounting.largest_prefill_tokens:,}", "681,280"),
        figure("pool as a share of the context", f"{accounting.pool_percent:.2f} %", "64.97 %"),
        figure("band of prompts between the two, tokens", f"{accounting.band_tokens:,}", "367,296"),
        figure("fixed pool, tokens", _rounded(accounting.fixed_pool_tokens), "2.04 M"),
        figure("fixed pool, times the context", f"{accounting.fixed_factor:.2f}", "1.95"),
        Figure("band with the fixed pool, tokens", f"{accounting.fixed_band_tokens:,}", None),
    )


def _rounded(tokens: int) -> str:
    """Write millions as they were published, and less in full."""
    return f"{tokens / MILLION:.2f} M" if tokens >= MILLION else f"{tokens:,}"
