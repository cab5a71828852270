"""The page pool of the fake: slots that say whose they are, leased by page, and never zeroed.

Rules it keeps:
- A slot keeps its word and its writer until somebody writes it again. Giving a page back changes nothing.
- Of the free pages that one is taken which was given back first, or last, or has the lowest number.
- What a page's keys and values would know of the text before them is its `history`: where in which prompt
  the page was computed.
It does not judge: a write into somebody else's page is counted, and lands.
"""

from collections import deque

NOBODY = 0


class Pool:
    """Pages of slots. Requests are numbers from 1."""

    def __init__(self, pages, page_tokens, *, order="first"):
        self.page_tokens = page_tokens
        self.pages = pages
        self.holders = [NOBODY] * pages
        self.histories = [None] * pages
        self.foreign_writes = 0
        self.watched = set()  # pages that somebody reads without holding them
        self._words = [None] * (pages * page_tokens)
        self._writers = [NOBODY] * (pages * page_tokens)
        self._free = deque(reversed(range(pages)) if order == "last" else range(pages))
        self._order = order

    @property
    def free(self):
        """How many pages nobody has."""
        return len(self._free)

    def take(self, count, holder):
        """Lease pages to a request; None when there are too few."""
        if count > len(self._free):
            return None
        if self._order == "lowest":
            self._free = deque(sorted(self._free))
        pages = [self._free.pop() if self._order == "last" else self._free.popleft() for _ in range(count)]
        for page in pages:
            self.holders[page] = holder
        return pages

    def give(self, pages):
        """Take pages back, with everything that stands in them."""
        for page in pages:
            self.holders[page] = NOBODY
        self._free.extend(reversed(pages))  # a prompt's last pages are the first to be taken again

    def write(self, page, at, words, writer):
        """Write words into slots of one page, whoever holds it now."""
        if self.holders[page] != writer or page in self.watched:
            self.foreign_writes += 1
        first = page * self.page_tokens + at
        self._words[first : first + len(words)] = words
        self._writers[first : first + len(words)] = [writer] * len(words)

    def read(self, pages, count):
        """(words, writers) of the first `count` slots of a block table."""
        words, writers, size = [], [], self.page_tokens
        for page in pages[: -(-count // size)]:
            words.extend(self._words[page * size : (page + 1) * size])
            writers.extend(self._writers[page * size : (page + 1) * size])
        return words[:count], writers[:count]
