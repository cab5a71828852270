"""Parts of a global state: each distinct one exists once, with the form that goes into a state's key.

Rules: a part is never changed. Two parts are the same object exactly when they have the same form, so that
a state is a tuple of parts and is compared by identity. A form is four things: `shape`, a digest of
everything that has no name; `names`, the names in order of appearance (pages, epochs, owners, requests,
attempts), of which only equality matters; `seqs`, lease numbers, of which only order matters; `bounds`, of
which only matters which lease numbers lie below. `tombs` are names that matter only while something else in
the state has them too.

It does not know what a part means: `forms*.py` write the forms, `canonical.py` joins them.
"""

from collections.abc import Hashable
from hashlib import blake2b
from typing import Any

from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer

SHAPE_BYTES = 16
SEQUENCE_BITS = 40  # of a lease number, below its incarnation


class Part:
    """One part. `value` is what a world is filled from; `moves` is filled by whoever asks what can happen."""

    __slots__ = ("bare", "bounds", "cache", "moves", "names", "pages", "seqs", "shape", "tombs", "value")

    def __init__(self, value: Any, sink: "Sink") -> None:
        self.value = value
        self.shape = sink.digest()
        self.names = tuple(sink.names)
        self.seqs = tuple(sink.seqs)
        self.bounds = tuple(sink.bounds)
        self.tombs = tuple(sink.tombs)
        self.pages = tuple(sink.pages)
        self.bare = self.shape if sink.bare is None else digest_of(sink.bare)
        self.moves: Any = None
        self.cache: dict[Any, Any] = {}

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a part is known by its identity: it stays in its process")


def digest_of(items: object) -> bytes:
    """Digest by content of what is made of tuples, numbers, strings and None: the same in every process."""
    return blake2b(repr(items).encode(), digest_size=SHAPE_BYTES).digest()


class Names:
    """Numbers for names, so that a form is a tuple of numbers. They differ between processes; keys do not."""

    def __init__(self, *, symmetric: bool, numbered: bool, kinds: dict[int, int]) -> None:
        """`kinds` groups requests that are alike; `numbered` keeps lease numbers as they are."""
        self.symmetric = symmetric
        self.numbered = numbered
        self.kinds = kinds
        self._known: dict[Hashable, int] = {}

    def number(self, name: Hashable) -> int:
        """The number of a name."""
        known = self._known
        found = known.get(name)
        if found is None:
            found = known[name] = len(known)
        return found


class Sink:
    """Where a form is written. Each method takes one word of the protocol and files it where it belongs."""

    __slots__ = ("_names", "bare", "bounds", "names", "pages", "seqs", "shape", "tombs")

    def __init__(self, names: Names) -> None:
        self._names = names
        self.shape: list[object] = []
        self.names: list[int] = []
        self.seqs: list[int] = []
        self.bounds: list[int] = []
        self.tombs: list[int] = []
        self.pages: list[int] = []
        self.bare: object = None

    def digest(self) -> bytes:
        """Digest of the shape, with how many names and numbers belong to it."""
        return digest_of((self.shape, len(self.names), len(self.seqs), len(self.bounds)))

    def put(self, *items: object) -> None:
        """Write what has no name: numbers, strings, None."""
        self.shape += items

    def peer(self, peer: Peer | None) -> None:
        """Incarnations are few (each restart costs weather), so they stay as they are."""
        self.shape.append(None if peer is None else (peer.node, peer.incarnation))

    def page(self, pool: str, page: int) -> None:
        """Write a page number of a pool."""
        if not self._names.symmetric:
            self.shape.append(page)
        self.names.append(self._names.number(("page", pool, page)))

    def epoch(self, pool: str, page: int, epoch: int) -> None:
        """Write an epoch of a page."""
        self.names.append(self._names.number(("epoch", pool, page, epoch)))

    def ref(self, pool: str, ref: PageRef) -> None:
        """Write a page under an epoch."""
        self.page(pool, ref.page)
        self.epoch(pool, ref.page, ref.epoch)

    def refs(self, pool: str, refs: "tuple[PageRef, ...] | list[PageRef]") -> None:
        """Write several."""
        self.shape.append(len(refs))
        for ref in refs:
            self.page(pool, ref.page)
            self.epoch(pool, ref.page, ref.epoch)

    def owner(self, pool: str, owner: int) -> None:
        """Write under which number a prefill node leased pages of its own."""
        self.names.append(self._names.number(("owner", pool, owner)))

    def seq(self, incarnation: int, sequence: int) -> None:
        """Write a lease number of a decode incarnation."""
        if self._names.numbered:
            self.shape.append(sequence)
        self.shape.append(incarnation)
        self.seqs.append((incarnation << SEQUENCE_BITS) + sequence)

    def bound(self, incarnation: int, sequence: int) -> None:
        """Write a number below which leases are forgotten."""
        if self._names.numbered:
            self.shape.append(sequence)
        self.shape.append(incarnation)
        self.bounds.append((incarnation << SEQUENCE_BITS) + sequence)

    def lease(self, lease: LeaseId) -> None:
        """Write the name of a lease."""
        self.seq(lease.incarnation, lease.sequence)

    def request(self, request: int) -> None:
        """Write a request. Its kind stands in the shape; kinds of one are never renamed."""
        self.shape.append(self._names.kinds.get(request, -request))
        self.names.append(self._names.number(("request", request)))

    def attempt(self, attempt: AttemptId) -> None:
        """Write an attempt. That there was none yet (number 0) is no name."""
        self.request(attempt.request)
        self.shape += (attempt.incarnation, attempt.number == 0)
        self.names.append(self.attempt_name(attempt))

    def attempt_name(self, attempt: AttemptId) -> int:
        """The number of an attempt's name."""
        return self._names.number(("attempt", attempt.incarnation, attempt.request, attempt.number))

    def tomb(self, attempt: AttemptId) -> None:
        """Write an attempt that matters only while somebody else may still speak of it."""
        self.tombs.append(self.attempt_name(attempt))


class Parts:
    """All parts of one process."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._known: dict[tuple[Hashable, ...], Part] = {}

    def __len__(self) -> int:
        """How many distinct parts there are."""
        return len(self._known)

    def intern(self, value: object, sink: Sink) -> Part:
        """The one part of that form. `value` is kept when the form is new."""
        form = (
            sink.digest(),
            tuple(sink.names),
            tuple(sink.seqs),
            tuple(sink.bounds),
            tuple(sink.tombs),
            tuple(sink.pages),
        )
        part = self._known.get(form)
        if part is None:
            part = self._known[form] = Part(value, sink)
        return part
