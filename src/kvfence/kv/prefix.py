"""The prefix index: which sealed pages hold which run of tokens, for one domain at a time.

Rules: a page's key is a SHA-256 chain from a root that covers all that changes KV (model and weights
revision, dtype, adapter, page size, domain) over the tokens up to and with the page. A hit never rests on
the key alone: domain, tokens and the page before it are compared too. Of two pages for one place the
first stays. A match leaves at least one token to compute. What is evicted first was used longest ago,
and no page goes before the pages that hang on it.

It owns no pages: pins and states are the ledger's, which its owner changes in the same step. Standard
library only, so that a simulated node uses this very index.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from kvfence.protocol.decisions import CORRECT, Decisions
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageState
from kvfence.protocol.words import PageRef

Digest = Callable[[bytes], bytes]

TOKEN_BYTES = 4


class PageTable(Protocol):
    """The ledger's arrays that the index reads."""

    @property
    def state(self) -> bytearray:
        """PageState of each page."""

    @property
    def epoch(self) -> Sequence[int]:
        """How often each page was leased."""


@dataclass(frozen=True, slots=True)
class KvIdentity:
    """All that changes KV besides the tokens. `adapter` None is the bare model."""

    model: str
    revision: str
    dtype: str
    page_tokens: int
    adapter: str | None = None

    def root(self, domain: str) -> bytes:
        """Encode identity and domain unambiguously: each field with its length before it."""
        adapter = "" if self.adapter is None else f"={self.adapter}"
        fields = ("kvfence prefix 1", self.model, self.revision, self.dtype, adapter, domain)
        encoded = (field.encode() for field in fields)
        return b"".join(len(field).to_bytes(4, "little") + field for field in encoded) + (
            self.page_tokens.to_bytes(4, "little")
        )


@dataclass(slots=True, eq=False)
class _Node:
    """One indexed page."""

    key: bytes
    domain: str
    parent: "_Node | None"
    chunk: bytes
    ref: PageRef
    children: dict[bytes, "_Node"]


class PrefixIndex:
    """Implements `PrefixSource` over one ledger. Not safe for threads; it belongs to the core's."""

    def __init__(
        self,
        identity: KvIdentity,
        table: PageTable,
        digest: Digest = CORRECT.prefix_digest,
        *,
        domain_of: Callable[[str], str] = CORRECT.prefix_domain,
        chains: bool = True,
        compares: bool = True,
    ) -> None:
        """Build an empty index. The last four are law 8's; `ruled_by` takes them from decisions."""
        self._identity = identity
        self._table = table
        self._digest, self._domain_of, self._chains, self._compares = digest, domain_of, chains, compares
        # From the longest unused to the latest used; a page always before the one it hangs on.
        self._nodes: OrderedDict[bytes, _Node] = OrderedDict()
        self._by_page: dict[int, _Node] = {}
        # Forgotten while the ledger still had them: theirs to give back once nobody reads them.
        self._orphans: dict[int, PageRef] = {}

    @classmethod
    def ruled_by(cls, decisions: Decisions, identity: KvIdentity, table: PageTable) -> Self:
        """Build an empty index that keys and compares as the decisions say."""
        return cls(
            identity,
            table,
            decisions.prefix_digest,
            domain_of=decisions.prefix_domain,
            chains=decisions.chains_prefix(),
            compares=decisions.compares_prefix(),
        )

    def __len__(self) -> int:
        """Count of indexed pages: at most one a page of the ledger."""
        return len(self._nodes)

    def match(self, domain: str, tokens: Sequence[int]) -> tuple[int, ...]:
        """Pages of the longest known run of full pages; at least one token is left to compute."""
        full_pages = max(0, len(tokens) - 1) // self._identity.page_tokens
        path = self._walk(self._domain_of(domain), self._cut(tokens, full_pages))
        self._touch(path)
        return tuple(node.ref.page for node in path)

    def publish(self, domain: str, tokens: Sequence[int], pages: Sequence[PageRef]) -> tuple[int, ...]:
        """Offer sealed pages that hold `tokens` from the first on; return those that now are in the index.

        A page that was in its place already is among them; one whose place another page has is not. Where
        a different content has the key, nothing further is taken.
        """
        domain = self._domain_of(domain)
        chunks = self._cut(tokens, len(pages))
        invariant(len(chunks) == len(pages), "every published page is full of tokens")
        path = self._walk(domain, chunks)
        root = self._root(domain)
        for chunk, ref in zip(chunks[len(path) :], pages[len(path) :], strict=True):
            key = self._digest((path[-1].key if path and self._chains else root) + chunk)
            if key in self._nodes:
                break
            path.append(self._insert(key, domain, path[-1] if path else None, chunk, ref))
        self._touch(path)
        return tuple(node.ref.page for node, ref in zip(path, pages, strict=False) if node.ref == ref)

    def evict(self, n: int) -> tuple[int, ...]:
        """Forget up to `n` least recently used pages that are CACHED in the ledger; return them."""
        evicted = self._evict_orphans(n)
        for node in list(self._nodes.values()) if len(evicted) < n else ():
            if len(evicted) == n:
                break
            if not node.children and self._table.state[node.ref.page] == PageState.CACHED:
                self._remove(node)
                evicted.append(node.ref.page)
        return tuple(evicted)

    def forget(self, page: int) -> None:
        """Forget one page, and what can be reached only through it.

        Such pages as the ledger still has as CACHED, now or later, are given back by `evict`.
        """
        node = self._by_page.get(page)
        stack = [] if node is None else [node]
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            node.children.clear()
            self._remove(node)
            self._orphans[node.ref.page] = node.ref

    # ------------------------------------------------------------ inside
    def _root(self, domain: str) -> bytes:
        return self._digest(self._identity.root(domain))

    def _cut(self, tokens: Sequence[int], pages: int) -> list[bytes]:
        """Bytes of the tokens of each of the first `pages` full pages."""
        page_tokens = self._identity.page_tokens
        packed = array("I", tokens[: pages * page_tokens])
        invariant(packed.itemsize == TOKEN_BYTES, "token ids are packed as 32-bit numbers")
        raw = packed.tobytes()
        size = page_tokens * TOKEN_BYTES
        return [raw[start : start + size] for start in range(0, len(raw) - size + 1, size)]

    def _walk(self, domain: str, chunks: Sequence[bytes]) -> list[_Node]:
        """Follow the longest indexed run. A key that leads to other content ends it."""
        path: list[_Node] = []
        root = self._root(domain) if chunks else b""
        for chunk in chunks:
            node = self._nodes.get(self._digest((path[-1].key if path and self._chains else root) + chunk))
            if node is None or not self._is_hit(node, path, domain, chunk):
                break
            self._check_held(node)
            path.append(node)
        return path

    def _is_hit(self, node: _Node, path: Sequence[_Node], domain: str, chunk: bytes) -> bool:
        """Tell whether the node is this content in this place; the key alone is not believed."""
        if not self._compares:
            return node not in path
        return node.chunk == chunk and node.parent is (path[-1] if path else None) and node.domain == domain

    def _check_held(self, node: _Node) -> None:
        page, epoch = node.ref.page, node.ref.epoch
        held = self._table.state[page] in (PageState.SEALED, PageState.CACHED)
        invariant(
            held and self._table.epoch[page] == epoch,
            f"page {page} left the index before it was leased again",
        )

    def _insert(self, key: bytes, domain: str, parent: _Node | None, chunk: bytes, ref: PageRef) -> _Node:
        invariant(
            self._table.state[ref.page] == PageState.SEALED and self._table.epoch[ref.page] == ref.epoch,
            f"{ref} is published only after it is sealed (law 8)",
        )
        invariant(ref.page not in self._by_page, f"{ref} holds one run of tokens only")
        node = _Node(key, domain, parent, chunk, ref, {})
        self._nodes[key] = self._by_page[ref.page] = node
        if parent is not None:
            parent.children[key] = node
        self._orphans.pop(ref.page, None)
        return node

    def _touch(self, path: Sequence[_Node]) -> None:
        for node in reversed(path):
            self._nodes.move_to_end(node.key)

    def _remove(self, node: _Node) -> None:
        del self._nodes[node.key]
        del self._by_page[node.ref.page]
        if node.parent is not None:
            node.parent.children.pop(node.key, None)

    def _evict_orphans(self, n: int) -> list[int]:
        """Take forgotten pages that nobody reads now; drop those that were leased again meanwhile."""
        epoch, state = self._table.epoch, self._table.state
        self._orphans = {page: ref for page, ref in self._orphans.items() if epoch[page] == ref.epoch}
        cached = [page for page in self._orphans if state[page] == PageState.CACHED][:n]
        for page in cached:
            del self._orphans[page]
        return cached
