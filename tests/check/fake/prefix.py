"""The prefix cache of the fake: full pages by key, pinned while they are used.

Of what is not in use, the page goes first that was used longest ago, and of one prompt the last page.
It holds pages of a `Pool` beyond the request that wrote them. What a key covers, whether a hit compares
words, and whether a match pins, are `Rules`.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice


@dataclass(frozen=True, slots=True)
class Entry:
    """A cached page. `chain` is the digest of all that stands before it."""

    page: int
    words: tuple[str, ...]
    domain: str
    chain: bytes


def chain_of(words, page_tokens, identity):
    """A digest before each full page: of the identity and every word up to there."""
    state, chain = blake2b(identity.encode(), digest_size=16), []
    for first in range(0, len(words) - page_tokens + 1, page_tokens):
        chain.append(state.digest())
        state.update("\x00".join(words[first : first + page_tokens]).encode())
    return chain


class Prefixes:
    """The index."""

    def __init__(self, pool, rules):
        self._pool, self._rules = pool, rules
        self._entries = OrderedDict()
        self._key_of_page = {}
        self._pins = Counter()

    def match(self, domain, words, chain):
        """The longest run of cached pages from the start; at least one word is left to be computed."""
        size, found = self._pool.page_tokens, []
        for ordinal in range((len(words) - 1) // size):
            own = words[ordinal * size : (ordinal + 1) * size]
            key = self._key(domain, own, chain[ordinal])
            entry = self._entries.get(key)
            if entry is None or (self._rules.compares_words() and tuple(own) != entry.words):
                break
            found.append((key, entry.page))
        for key, _ in reversed(found):
            self._entries.move_to_end(key)
        found = [page for _, page in found]
        if self._rules.pins_match():
            self._pins.update(found)
        return found

    def unpin(self, pages):
        """Whoever matched these has done with them."""
        if self._rules.pins_match():
            self._pins.subtract(pages)

    def publish(self, domain, words, chain, pages, first):
        """Show full pages from ordinal `first` on. Returns those that are the index's from now on."""
        size, kept = self._pool.page_tokens, []
        for ordinal in range(len(chain) - 1, first - 1, -1):
            own = tuple(words[ordinal * size : (ordinal + 1) * size])
            key = self._key(domain, own, chain[ordinal])
            if key not in self._entries:
                page = pages[ordinal]
                self._entries[key] = Entry(page, own, domain, chain[ordinal])
                self._key_of_page[page] = key
                self._pins[page] += 1  # its writer still uses it
                kept.append(page)
        return kept

    def release(self, pages):
        """The writer of these has ended: from now on they may be evicted."""
        self._pins.subtract(pages)

    def withdraw(self, pages):
        """Forget pages whose writing was never finished."""
        for page in pages:
            self._entries.pop(self._key_of_page.pop(page, None), None)
            self._pins[page] = 0

    def has_evictable(self, count):
        """Whether so many pages are cached and not in use."""
        return sum(1 for _ in islice(self._unused(), count)) == count

    def evict(self):
        """Give the page that was not used for longest back to the pool."""
        key, page = next(self._unused())
        del self._entries[key], self._key_of_page[page]
        self._pool.give([page])

    def _unused(self):
        return ((key, entry.page) for key, entry in self._entries.items() if self._pins[entry.page] <= 0)

    def _key(self, domain, words, chain):
        before = chain if self._rules.chains() else b""
        text = "\x00".join((domain, *words)).encode()
        return blake2b(before + text, digest_size=16).digest()[: self._rules.key_bytes()]
