"""Keys that were seen: a set of 64-bit numbers in one array, and the places of such numbers in a list.

Rules: open addressing, linear probing, at most 60 % full, so that a key costs 13 to 27 bytes (a Python set
of numbers takes some 80). Keys are digests, so their low bits are as good as any hash of them.
"""

from array import array

from kvfence.protocol.errors import unreachable

FIRST = 1 << 12
FULL_PERCENT = 60


class KeySet:
    """A set of 64-bit keys that only grows."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * FIRST))
        self._mask = FIRST - 1
        self._count = 0

    def __len__(self) -> int:
        """How many keys are in it."""
        return self._count

    def __contains__(self, key: int) -> bool:
        """Whether a key is in it."""
        key = key or 1
        table, mask = self._table, self._mask
        place = key & mask
        while found := table[place]:
            if found == key:
                return True
            place = (place + 1) & mask
        return False

    @property
    def bytes(self) -> int:
        """What the table takes."""
        return 8 * len(self._table)

    def add(self, key: int) -> bool:
        """Put a key in; tell whether it is new."""
        key = key or 1  # an empty place is 0
        table, mask = self._table, self._mask
        place = key & mask
        while found := table[place]:
            if found == key:
                return False
            place = (place + 1) & mask
        table[place] = key
        self._count += 1
        if self._count * 100 > FULL_PERCENT * len(table):
            self._grow()
        return True

    def _grow(self) -> None:
        old = self._table
        self._table = array("Q", bytes(16 * len(old)))
        self._mask = len(self._table) - 1
        table, mask = self._table, self._mask
        for key in old:
            if key:
                place = key & mask
                while table[place]:
                    place = (place + 1) & mask
                table[place] = key


class KeyIndex:
    """The places of different keys in an array, which must not change."""

    def __init__(self, keys: "array[int]") -> None:
        size = FIRST
        while len(keys) * 100 > FULL_PERCENT * size:
            size *= 2
        self._keys = keys
        self._table = array("I", bytes(4 * size))
        self._mask = size - 1
        table, mask = self._table, self._mask
        for number, key in enumerate(keys, 1):
            place = key & mask
            while table[place]:
                place = (place + 1) & mask
            table[place] = number

    def number(self, key: int) -> int:
        """Where that key stands."""
        keys, table, mask = self._keys, self._table, self._mask
        place = key & mask
        while found := table[place]:
            if keys[found - 1] == key:
                return found - 1
            place = (place + 1) & mask
        return unreachable(f"every key that is asked for is there, {key} too")
