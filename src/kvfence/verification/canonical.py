"""The key of a global state: what is left when names are taken away.

Names are renamed by first appearance over the parts in a fixed order; lease numbers are replaced by their
rank. Pages of a pool stand in the order in which its node's core mentions them (first the free ones as they
will be leased), not in the order of their numbers, so that the numbers decide nothing.

Why each renaming is sound (two states with one key behave alike):

- Pages. A core treats page numbers as names: it takes them from the free list, whose order is in the key.
- Epochs. They are compared for equality alone, and a lease makes one that the page never had. A page that
  was leased twice behaves as one that was leased seven times.
- Owners on prefill, attempts: equality alone, and a new one differs from all others.
- Lease numbers: equality and order. The next one is above all others, whatever its value. Of a lowest live
  number only matters which lease numbers lie below it: two bounds with none between them do the same.
- Requests of a kind that a scope declares: their asks differ in nothing but names.
- Batch numbers and incarnations are few; they stay as they are.
- An aborted or ended attempt that nobody else in the state speaks of (a tombstone) can never be asked for
  again: every question about an attempt comes from a message, a record or a router's request.
- A client that has heard its end, and whose request nobody else speaks of, hears nothing more.

Equal keys are taken for equal states. The key is 64 bits of BLAKE2b over the renamed parts: among n states
some two collide with a chance of about n²/2⁶⁵ (for 10⁷ states 3 in a million), and then one of them is not
visited. First appearance is not a perfect canonical form: some equivalent states have two keys, which costs
time and never hides a state.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import chain, count
from operator import attrgetter, itemgetter

from kvfence.verification.layout import LIVING, Layout, State
from kvfence.verification.parts import Part

KEY_BYTES = 8
UNNAMED = 0xFFFF

_names = attrgetter("names")
_seqs = attrgetter("seqs")
_bounds = attrgetter("bounds")
_shape = attrgetter("shape")


def key_function(layout: Layout) -> Callable[[State], int]:
    """Return a function from states to keys."""
    of_nodes = _taking(layout.node.values())
    pooled = tuple((layout.node[name], places) for name, places in layout.pages.items())
    of_rest = _taking((LIVING, *layout.writes.values(), *layout.wires.values(), layout.budget))
    of_requests = _taking(layout.request.values())

    def key_of(state: State) -> int:
        alive = of_nodes(state)
        parts = [*alive, *of_rest(state)]
        for place, pages in pooled:
            part = state[place]
            ordered = part.cache.get(place) or _in_order(part, place, pages)
            parts += ordered(state)
        names = list(chain.from_iterable(map(_names, parts)))
        index = dict(zip(dict.fromkeys(names), count(), strict=False))
        text = array("H", map(index.__getitem__, names))
        seqs = list(chain.from_iterable(map(_seqs, parts)))
        ranked = sorted(set(seqs))
        text.extend(map(dict(zip(ranked, count(), strict=False)).__getitem__, seqs))
        bounds = list(chain.from_iterable(map(_bounds, parts)))
        if bounds:
            text.extend([bisect_left(ranked, bound) for bound in bounds])
        loose = _loose_ends(alive, of_requests(state), index)
        whole = b"".join([*map(_shape, parts), text.tobytes(), loose])
        return int.from_bytes(blake2b(whole, digest_size=KEY_BYTES).digest(), "little")

    return key_of


Taking = Callable[[State], tuple[Part, ...]]


def _taking(places: Iterable[int]) -> Taking:
    """Return a function that takes the parts at some places."""
    wanted = tuple(places)
    if len(wanted) == 1:
        return lambda state: (state[wanted[0]],)
    return itemgetter(*wanted)


def _in_order(part: Part, place: int, pages: list[int]) -> Taking:
    """The pages of a pool as its node mentions them; a dead node's stand as they are.

    Kept with the node's part, by its place: all dead nodes are one part.
    """
    order = part.pages or range(len(pages))
    taking: Taking = part.cache.setdefault(place, _taking(pages[page] for page in order))
    return taking


def _loose_ends(nodes: tuple[Part, ...], requests: tuple[Part, ...], index: dict[int, int]) -> bytes:
    """Tombstones that somebody may still ask about, and clients, by the names that they have by now."""
    text = array("H")
    for part in nodes:
        if part.tombs:
            kept = sorted([index[name] for name in part.tombs if name in index])
            text.append(len(kept))
            text.extend(kept)
        else:
            text.append(0)
    ends = []
    for part in requests:
        named = index.get(part.names[0], UNNAMED)
        if named == UNNAMED:
            ends.append((UNNAMED, part.bare, UNNAMED))
        else:
            aborted = index.get(part.tombs[0], UNNAMED) if part.tombs else UNNAMED
            ends.append((named, part.shape, aborted))
    ends.sort()
    return text.tobytes() + b"".join([b"%d,%b,%d;" % end for end in ends])
