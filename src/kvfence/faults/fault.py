"""What a fault is, as data: its name, what it re-creates, what it changes, what comes of it, who stops it.

The root-cause class is the first half of the name. A fault without public bugs is a slip that a protocol
of this kind invites; it says so when it is shown.
"""

from dataclasses import dataclass
from enum import Enum, unique

from kvfence.faults.layers import Layer


@unique
class Ground(Enum):
    """Where a fault can do its harm."""

    ENGINE = "engine"  # on real nodes and pools
    WORLD = "world"  # in a simulated or explored deployment: the nodes do not get there by themselves
    BOTH = "both"


@unique
class Harm(Enum):
    """What comes of it when no layer watches."""

    LEAK = "leak"  # bytes or tokens reach a request that they were not made for
    REUSE = "reuse"  # a tenant is served from pages of another one: shown by timing and counters
    STALL = "stall"  # pages do not come home
    TRESPASS = "trespass"  # a step writes into pages that are not its row's any more
    DOUBLE = "double"  # one request is computed and answered twice at once


@dataclass(frozen=True, slots=True)
class Bug:
    """One public report, by its number in our collection. `url` None: there is no page of its own."""

    number: str
    project: str
    ref: str
    url: str | None
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One entry of the catalogue.

    `decisions` are the methods of `Decisions` that its mutant overrides; `bugs` name entries of `BUGS`;
    `caught_by` are the layers of which each is expected to speak when the fault does harm, and which stop it
    together; what one alone misses, the detection matrix shows. `by_chance` are layers that speak now and
    then and stop nothing: a test holds both against the matrix. `lifts_capacity`: with it a deployment starts
    though its context is larger than a pool. `prefill_pool_only`: with it `--pool-tokens` sizes the prefill
    pools, and decode takes its default.
    """

    name: str
    bugs: tuple[str, ...]
    decisions: tuple[str, ...]
    what: str
    leaks: str
    caught_by: tuple[Layer, ...]
    by_chance: tuple[Layer, ...] = ()
    runs_on: Ground = Ground.BOTH
    harm: Harm = Harm.LEAK
    lifts_capacity: bool = False
    prefill_pool_only: bool = False

    @property
    def root_cause(self) -> str:
        """The class of public bugs that it re-creates."""
        return self.name.partition("/")[0]

    @property
    def runs_on_engine(self) -> bool:
        """Whether `kvfence serve` can show it."""
        return self.runs_on is not Ground.WORLD
