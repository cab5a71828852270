import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kvfence.kv.prefix import KvIdentity, PrefixIndex
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.ledger import PageLedger, PageState
from kvfence.protocol.words import PageRef

PAGE_TOKENS = 4
IDENTITY = KvIdentity("model", "revision", "bfloat16", PAGE_TOKENS)


class Node:
    """A prefill node's ledger and index, with the core's part played by hand."""

    def __init__(self, pages: int = 32, digest=None, identity: KvIdentity = IDENTITY) -> None:
        self.ledger = PageLedger(pages)
        self.index = PrefixIndex(identity, self.ledger, *([] if digest is None else [digest]))
        self.sequences = itertools.count(1)

    def sealed(self, pages: int) -> tuple[PageRef, ...]:
        if pages == 0:
            return ()
        refs = self.ledger.lease(pages, next(self.sequences))
        assert refs is not None
        self.ledger.seal(refs)
        return refs

    def publish(self, domain: str, tokens) -> tuple[int, ...]:
        """Publish all full pages of a prompt computed from scratch; what was not taken is freed."""
        refs = self.sealed(len(tokens) // PAGE_TOKENS)
        taken = self.index.publish(domain, tokens, refs)
        self.ledger.disown([ref for ref in refs if ref.page in taken])
        rest = [ref for ref in refs if ref.page not in taken]
        self.ledger.close(rest)
        self.ledger.free(rest)
        return taken

    def evict(self, n: int) -> tuple[int, ...]:
        return self.ledger.evict(self.index.evict(n))


def tokens_of(*pages: int, more: int = 1) -> list[int]:
    """A prompt whose pages are named by numbers, and `more` tokens behind them."""
    return [number for page in pages for number in (page, 1, 2, 3)] + [9] * more


def test_nothing_is_found_in_an_empty_index():
    assert Node().index.match("a", tokens_of(1, 2)) == ()


@pytest.mark.parametrize("more", [1, 3])
def test_a_published_prefix_is_found_as_far_as_it_is_the_same(more):
    node = Node()
    pages = node.publish("a", tokens_of(1, 2, 3, more=0))
    assert len(pages) == len(node.index) == 3
    assert node.index.match("a", tokens_of(1, 2, 3, more=more)) == pages
    assert node.index.match("a", tokens_of(1, 2, 4)) == pages[:2]
    assert node.index.match("a", tokens_of(1)) == pages[:1]
    assert node.index.match("a", tokens_of(2, 3)) == ()


def test_a_match_leaves_a_token_to_compute():
    node = Node()
    pages = node.publish("a", tokens_of(1, 2, more=0))
    assert node.index.match("a", tokens_of(1, 2, more=0)) == pages[:1]
    assert node.index.match("a", tokens_of(1, more=0)) == ()
    assert node.index.match("a", []) == ()
    assert node.index.match("a", tokens_of(1, 2, more=1)) == pages


def test_domains_never_cross():
    node = Node()
    pages = node.publish("a", tokens_of(1, 2))
    assert node.index.match("b", tokens_of(1, 2)) == ()
    others = node.publish("b", tokens_of(1, 2))
    assert node.index.match("a", tokens_of(1, 2)) == pages
    assert node.index.match("b", tokens_of(1, 2)) == others
    assert not set(pages) & set(others)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"revision": "other"},
        {"dtype": "float32"},
        {"page_tokens": 8},
        {"adapter": "lora"},
        {"adapter": ""},
        {"model": "modelrevision", "revision": ""},
    ],
)
def test_the_root_covers_everything_that_changes_kv(change):
    assert replace(IDENTITY, **change).root("a") != IDENTITY.root("a")
    assert IDENTITY.root("a") != IDENTITY.root("b")
    assert IDENTITY.root("a") == replace(IDENTITY).root("a")


def test_of_two_publishers_the_first_stays_and_the_second_hangs_its_rest_on_it():
    node = Node()
    first = node.publish("a", tokens_of(1, 2))
    second = node.publish("a", tokens_of(1, 2, 3))
    assert len(second) == 1
    assert node.index.match("a", tokens_of(1, 2, 3)) == (*first, *second)


def test_publishing_again_with_the_matched_pages_names_them_as_indexed():
    node = Node()
    first = node.publish("a", tokens_of(1, 2))
    node.ledger.pin(first)
    new = node.sealed(1)
    taken = node.index.publish("a", tokens_of(1, 2, 3), [*node.ledger.refs(first), *new])
    assert taken == (*first, new[0].page)


def test_a_collision_of_keys_is_refused_by_comparing_tokens():
    node = Node(digest=lambda _: b"the same for all")
    pages = node.publish("a", tokens_of(1))
    assert len(pages) == 1
    assert node.index.match("a", tokens_of(1)) == pages
    assert node.index.match("a", tokens_of(2)) == ()
    assert node.index.match("b", tokens_of(1)) == ()
    assert node.publish("a", tokens_of(2)) == ()
    assert node.publish("b", tokens_of(1)) == ()
    assert node.index.match("a", tokens_of(1)) == pages


def test_a_collision_of_keys_under_another_prefix_is_refused_by_comparing_the_page_before():
    def last_chunk_only(data: bytes) -> bytes:
        return data[-PAGE_TOKENS * 4 :]

    node = Node(digest=last_chunk_only)
    pages = node.publish("a", tokens_of(1, 5))
    assert node.index.match("a", tokens_of(1, 5)) == pages
    assert node.publish("a", tokens_of(2)) != ()
    # The same last page behind another first one: same key, same tokens of the page, another past.
    assert len(node.index.match("a", tokens_of(2, 5))) == 1
    assert node.index.match("a", tokens_of(5)) == ()
    assert node.index.match("b", tokens_of(1, 5)) == ()


def test_the_longest_unused_goes_first_and_no_page_before_those_that_hang_on_it():
    node = Node()
    old = node.publish("a", tokens_of(1, 2))
    new = node.publish("a", tokens_of(3, 4))
    node.index.match("a", tokens_of(1, 2))
    assert node.evict(1) == (new[1],)
    assert node.evict(2) == (new[0], old[1])
    assert node.index.match("a", tokens_of(1, 2)) == old[:1]
    assert node.evict(9) == old[:1]
    assert node.evict(1) == ()
    assert node.ledger.count(PageState.FREE) == 32


def test_using_a_short_prefix_does_not_let_its_rest_outlive_it():
    node = Node()
    pages = node.publish("a", tokens_of(1, 2, 3))
    node.index.match("a", tokens_of(1))
    assert node.evict(3) == tuple(reversed(pages))


def test_pinned_pages_are_not_evicted():
    node = Node()
    pages = node.publish("a", tokens_of(1, 2))
    node.ledger.pin(pages[:1])
    assert node.evict(5) == pages[1:]
    assert node.index.match("a", tokens_of(1, 2)) == pages[:1]
    node.ledger.unpin(pages[:1])
    assert node.evict(5) == pages[:1]


def test_a_forgotten_page_takes_along_what_hangs_on_it_and_comes_home():
    node = Node()
    pages = node.publish("a", tokens_of(1, 2, 3))
    branch = node.publish("a", tokens_of(1, 7))
    node.ledger.pin(pages[:2])
    node.index.forget(pages[1])
    node.index.forget(pages[1])
    assert node.index.match("a", tokens_of(1, 2, 3)) == pages[:1]
    assert node.index.match("a", tokens_of(1, 7)) == (pages[0], *branch)
    assert node.evict(1) == (pages[2],)  # no longer reachable, so it goes first
    assert node.evict(1) == branch
    assert node.evict(1) == ()
    node.ledger.unpin(pages[:2])
    assert set(node.evict(9)) == set(pages[:2])
    assert node.ledger.count(PageState.FREE) == 32


def test_a_forgotten_page_that_was_leased_again_is_nobody_s_orphan():
    node = Node(pages=1)
    (page,) = node.publish("a", tokens_of(1))
    node.index.forget(page)
    node.ledger.evict([page])
    node.publish("a", tokens_of(2))
    node.index.forget(page)
    assert node.index.evict(5) == (page,)
    assert node.index.evict(5) == ()


def test_forgetting_what_is_unknown_does_nothing():
    node = Node()
    node.index.forget(3)
    assert len(node.index) == 0


def test_only_sealed_full_pages_under_their_epoch_are_published():
    node = Node()
    (reserved,) = node.ledger.lease(1, 99)
    with pytest.raises(InvariantError, match="law 8"):
        node.index.publish("a", tokens_of(1), [reserved])
    (sealed,) = node.sealed(1)
    with pytest.raises(InvariantError, match="law 8"):
        node.index.publish("a", tokens_of(1), [PageRef(sealed.page, sealed.epoch + 1)])
    with pytest.raises(InvariantError, match="full"):
        node.index.publish("a", [1, 2, 3], [sealed])
    assert node.index.publish("a", tokens_of(1), [sealed]) == (sealed.page,)
    with pytest.raises(InvariantError, match="one run"):
        node.index.publish("a", tokens_of(2), [sealed])


def test_a_page_leased_again_while_indexed_is_never_returned():
    node = Node(pages=1)
    (page,) = node.publish("a", tokens_of(1))
    node.ledger.evict([page])  # behind the index's back
    with pytest.raises(InvariantError, match="left the index"):
        node.index.match("a", tokens_of(1))
    node.sealed(1)
    with pytest.raises(InvariantError, match="left the index"):
        node.index.match("a", tokens_of(1))


prompts = st.lists(st.integers(0, 2), max_size=5).map(lambda pages: tokens_of(*pages))
domains = st.sampled_from(["a", "b"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(domains, prompts), max_size=12), domains, prompts)
def test_a_match_is_the_longest_common_run_of_pages_of_that_domain(published, domain, wanted):
    node = Node(pages=128)
    content: dict[int, tuple[str, list[int]]] = {}
    for where, tokens in published:
        for page in node.publish(where, tokens):
            content.setdefault(page, (where, tokens))
    found = node.index.match(domain, wanted)
    common = [
        sum(
            1
            for _ in itertools.takewhile(
                lambda pair: pair[0] == pair[1], zip(_pages(tokens), _pages(wanted), strict=False)
            )
        )
        for where, tokens in published
        if where == domain
    ]
    assert len(found) == max(common, default=0)
    for index, page in enumerate(found):
        where, tokens = content[page]
        assert where == domain
        assert _pages(tokens)[: index + 1] == _pages(wanted)[: index + 1]


def _pages(tokens):
    full = len(tokens) // PAGE_TOKENS
    return [tuple(tokens[PAGE_TOKENS * page : PAGE_TOKENS * (page + 1)]) for page in range(full)]


class PrefixMachine(RuleBasedStateMachine):
    """Any order of publishing, matching with pins, evicting and forgetting: nothing is lost or mixed up."""

    def __init__(self) -> None:
        super().__init__()
        self.node = Node(pages=24)
        self.content: dict[PageRef, tuple[str, tuple[int, ...]]] = {}
        self.pinned: list[tuple[int, ...]] = []

    @rule(domain=domains, tokens=prompts)
    def publish(self, domain, tokens):
        count = len(tokens) // PAGE_TOKENS
        if self.node.ledger.free_pages < count:
            self.node.evict(count)
        if count == 0 or self.node.ledger.free_pages < count:
            return
        pages = _pages(tokens)
        refs_before = self.node.ledger.refs(range(24))
        for page in self.node.publish(domain, tokens):
            (ref,) = self.node.ledger.refs([page])
            if ref != refs_before[page]:
                ordinal = self._ordinal(page)
                self.content[ref] = (domain, tuple(itertools.chain(*pages[: ordinal + 1])))

    def _ordinal(self, page):
        node, ordinal = self.node.index._by_page[page], 0
        while node.parent is not None:
            node, ordinal = node.parent, ordinal + 1
        return ordinal

    @rule(domain=domains, tokens=prompts)
    def match(self, domain, tokens):
        pages = self.node.index.match(domain, tokens)
        assert len(pages) * PAGE_TOKENS < max(len(tokens), 1)
        for index, ref in enumerate(self.node.ledger.refs(pages)):
            assert self.content[ref] == (domain, tuple(tokens[: (index + 1) * PAGE_TOKENS]))
        self.node.ledger.pin(pages)
        self.pinned.append(pages)

    @rule()
    def unpin(self):
        if self.pinned:
            self.node.ledger.unpin(self.pinned.pop(0))

    @rule(n=st.integers(0, 5))
    def evict(self, n):
        pinned = {page for pages in self.pinned for page in pages}
        evicted = self.node.evict(n)
        assert len(evicted) <= n
        assert not pinned & set(evicted)

    @rule(page=st.integers(0, 23))
    def forget(self, page):
        self.node.index.forget(page)

    @invariant()
    def every_indexed_page_is_held_and_its_parent_is_indexed(self):
        index, ledger = self.node.index, self.node.ledger
        for node in index._nodes.values():
            assert ledger.state[node.ref.page] in (PageState.SEALED, PageState.CACHED)
            assert node.parent is None or index._nodes[node.parent.key] is node.parent

    def teardown(self):
        while self.pinned:
            self.unpin()
        self.node.evict(24)
        assert self.node.ledger.count(PageState.FREE) == 24
        assert len(self.node.index) == 0


PrefixMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
test_any_order_of_use = PrefixMachine.TestCase
