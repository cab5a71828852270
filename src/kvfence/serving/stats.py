"""Figures that a node keeps about itself and sends along with its hello.

A key is `name` or `name|label=value,…`; names are Prometheus names without the `kvfence_` prefix, and
those that end in `_total` are counters. The router renders them with the node's name beside. No label's
value holds `|`, `,` or `=`: they are words of ours.
"""

from collections.abc import Iterable, Iterator
from enum import Enum

KEYS_MAX = 512


class NodeStats:
    """A bounded table of counters and gauges. Not thread-safe: one loop owns it."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._dropped = 0

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        key = stat_key(name, labels)
        self._put(key, self._values.get(key, 0) + amount)

    def begin(self, *names: str, reasons: Iterable[Enum] = ()) -> None:
        """Show counters before they first count, for each reason: an alarm needs a zero to rise from."""
        labels = [{"reason": str(reason.value)} for reason in reasons] or [{}]
        for name in names:
            for label in labels:
                self.add(name, 0, **label)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        self._put(stat_key(name, labels), value)

    def snapshot(self) -> dict[str, float]:
        """A copy, with the count of what found no room."""
        return {**self._values, "figures_dropped_total": self._dropped}

    def _put(self, key: str, value: float) -> None:
        if key not in self._values and len(self._values) >= KEYS_MAX:
            self._dropped += 1
            return
        self._values[key] = value


def stat_key(name: str, labels: dict[str, str]) -> str:
    """The key of a figure."""
    if not labels:
        return name
    return name + "|" + ",".join(f"{label}={value}" for label, value in sorted(labels.items()))


def parse_stat_key(key: str) -> tuple[str, dict[str, str]]:
    """Inverse of stat_key."""
    name, _, rest = key.partition("|")
    return name, dict(_pairs(rest))


def _pairs(rest: str) -> Iterator[tuple[str, str]]:
    for part in rest.split(","):
        label, found, value = part.partition("=")
        if found:
            yield label, value
