"""Containers of a world that are filled from parts when something in them is asked for.

Rules: whatever is asked, the part that answers is looked at first (`World.look`), and where something is
changed, its place is put into `changed`. `fill` and `held` are for whoever fills and empties them, and take
no note.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Protocol, TypeVar

from kvfence.protocol.words import Peer
from kvfence.verification.layout import LIVING, Layout
from kvfence.verification.parts import Part
from kvfence.world import Core, Page

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Looking(Protocol):
    """A world that takes note."""

    layout: Layout
    changed: set[int]

    def look(self, place: int) -> Part:
        """Look at a part, and fill the containers from it."""
        ...

    @property
    def living(self) -> dict[Peer, None]:
        """Who lives."""
        ...


class Lazy(dict[K, V]):
    """A dictionary that is filled part by part, and remembers which parts were changed."""

    def __init__(self, world: Looking, place_of: Callable[[Any], int], places: list[int]) -> None:
        super().__init__()
        self._world = world
        self._place_of = place_of
        self._places = places

    def _all(self) -> None:
        for place in self._places:
            self._world.look(place)

    def _touch(self, key: Any) -> None:
        place = self._place_of(key)
        self._world.look(place)
        self._world.changed.add(place)

    def __getitem__(self, key: K) -> V:
        self._world.look(self._place_of(key))
        return super().__getitem__(key)

    def get(self, key: K, default: Any = None) -> Any:
        self._world.look(self._place_of(key))
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._world.look(self._place_of(key))
        return super().__contains__(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._touch(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self._touch(key)
        super().__delitem__(key)

    def pop(self, key: K, *default: Any) -> Any:
        self._touch(key)
        return super().pop(key, *default)

    def __iter__(self) -> Iterator[K]:
        self._all()
        return super().__iter__()

    def keys(self) -> Any:
        self._all()
        return super().keys()

    def values(self) -> Any:
        self._all()
        return super().values()

    def items(self) -> Any:
        self._all()
        return super().items()

    def fill(self, key: K, value: V) -> None:
        """Put in what a part holds, without taking note."""
        super().__setitem__(key, value)

    def held(self) -> list[tuple[K, V]]:
        """What is in it now, without looking at anything more."""
        return list(super().items())


class LazyCores(Lazy[Peer, Core]):
    """Cores. Whether a process lives is asked of who lives, not of its node."""

    def __contains__(self, peer: object) -> bool:
        return peer in self._world.living

    def get(self, key: Peer, default: Any = None) -> Any:
        return super().get(key, default) if key in self._world.living else default

    def __setitem__(self, peer: Peer, core: Core) -> None:
        if peer not in self._world.living:
            self._world.living[peer] = None
            self._world.changed.add(LIVING)
        super().__setitem__(peer, core)

    def pop(self, peer: Peer, *default: Any) -> Any:
        core = super().pop(peer, *default)
        self._world.living.pop(peer, None)
        self._world.changed.add(LIVING)
        return core


class LazyPool:
    """A pool whose pages are parts."""

    def __init__(self, world: Looking, places: list[int]) -> None:
        self._world = world
        self._places = places
        self.pages: dict[int, Page] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, page: int) -> Page:
        found = self.pages.get(page)
        if found is None:
            found = self.pages[page] = self._world.look(self._places[page]).value
        return found

    def __setitem__(self, page: int, content: Page) -> None:
        self.pages[page] = content
        self._world.changed.add(self._places[page])

    def __iter__(self) -> Iterator[Page]:
        return (self[page] for page in range(len(self)))


class LazyPools(dict[Peer, Any]):
    """Pools by the incarnation whose memory they are."""

    def __init__(self, world: Looking) -> None:
        super().__init__()
        self._world = world

    def __getitem__(self, peer: Peer) -> Any:
        self._world.look(LIVING)
        return super().__getitem__(peer)

    def get(self, peer: Peer, default: Any = None) -> Any:
        self._world.look(LIVING)
        return super().get(peer, default)

    def pop(self, peer: Peer, *default: Any) -> Any:
        self._world.look(LIVING)
        if not super().__contains__(peer):
            return super().pop(peer, *default)
        self._world.changed.add(LIVING)
        self._world.changed.update(self._world.layout.pages.get(peer.node, ()))
        return super().pop(peer, *default)

    def __setitem__(self, peer: Peer, pool: Any) -> None:
        self._world.look(LIVING)
        self._world.changed.add(LIVING)
        if not isinstance(pool, LazyPool):
            fresh = LazyPool(self._world, self._world.layout.pages[peer.node])
            for page, content in enumerate(pool):
                fresh[page] = content
            pool = fresh
        super().__setitem__(peer, pool)

    def fill(self, peer: Peer, pool: LazyPool) -> None:
        """Put in a pool that stands, without taking note."""
        super().__setitem__(peer, pool)

    def held(self) -> list[tuple[Peer, Any]]:
        """The pools that stand now."""
        return list(super().items())
