"""What became of many runs, added up. Tallies of parts add up to that of the whole, in any order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from kvfence.simulation.outcome import Outcome
from kvfence.simulation.probes import PROBES

FAILURES_MAX = 20  # scripts that are kept


@dataclass(slots=True)
class Tally:
    """Sums over runs. `found` are the seeds with findings, sorted when asked for."""

    seeds: int = 0
    happenings: int = 0
    requests: int = 0
    virtual_us: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    probes: dict[str, int] = field(default_factory=dict)
    rows: set[tuple[str, str, str]] = field(default_factory=set)
    catches: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)  # of each run's first finding
    found: list[int] = field(default_factory=list)
    failures: list[Outcome] = field(default_factory=list)  # the first few with their scripts

    def add(self, outcome: Outcome) -> None:
        """Take one run in."""
        self.seeds += 1
        self.happenings += outcome.happenings
        self.requests += outcome.requests
        self.virtual_us += outcome.virtual_us
        add_counts(self.ends, outcome.ends)
        add_counts(self.probes, outcome.probes)
        add_counts(self.catches, outcome.catches)
        self.rows.update(outcome.rows)
        if not outcome.is_clean:
            add_counts(self.kinds, {outcome.findings[0].kind.value: 1})
            self.found.append(outcome.seed)
            self._keep(outcome)

    def merge(self, other: "Tally") -> None:
        """Take the tally of other runs in."""
        self.seeds += other.seeds
        self.happenings += other.happenings
        self.requests += other.requests
        self.virtual_us += other.virtual_us
        for mine, theirs in (
            (self.ends, other.ends),
            (self.probes, other.probes),
            (self.catches, other.catches),
            (self.kinds, other.kinds),
        ):
            add_counts(mine, theirs)
        self.rows |= other.rows
        self.found += other.found
        for outcome in other.failures:
            self._keep(outcome)

    def _keep(self, outcome: Outcome) -> None:
        self.failures.append(outcome)
        self.failures.sort(key=lambda kept: (len(kept.script), kept.seed))
        del self.failures[FAILURES_MAX:]

    @property
    def silent_probes(self) -> list[str]:
        """Probes that never fired."""
        return [name for name in PROBES if not self.probes.get(name)]

    def hours_a_minute(self, wall_s: float) -> float:
        """Simulated hours in a real minute."""
        return self.virtual_us / 3.6e9 / (wall_s / 60) if wall_s > 0 else 0.0


def seeds_to_find(found: list[int], first: int) -> float | None:
    """Median number of seeds that it takes to find it, starting anywhere; None when it never was."""
    places = sorted(found)
    gaps = [place - before for before, place in zip([first - 1, *places], places, strict=False)]
    return median(gaps) if gaps else None


def add_counts(sums: dict[str, int], counts: Mapping[str, int]) -> None:
    """Add counts by name."""
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count
