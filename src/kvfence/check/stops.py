"""What ends a scenario, or the whole run, from within a request. Scenarios let all of these pass; a spent
budget takes along what a scenario had seen and not yet confirmed.

    StopRun
    ├── ForeignMarkerSeen   somebody else's words came back: the run ends, with what to do
    ├── LifelineFailed      a small request beside a heavy one is slow or fails: what is heavy ends
    └── BudgetSpent         the next request would pass what the user allowed

None of them is an error of ours or of the operator's: they are what a run is for, or how it keeps its word.
"""

from collections.abc import Iterator
from enum import Enum, unique

from kvfence.check.asks import Ask
from kvfence.check.markers import Hit
from kvfence.check.reply import Reply
from kvfence.check.scenario import Outcome


class StopRun(Exception):  # noqa: N818 -- it stops a run, and is no error
    """Root of what ends a scenario from within a request."""


class ForeignMarkerSeen(StopRun):
    """A marker that this request was never given is in its answer."""

    def __init__(self, *, request: int, tenant: str, ask: Ask, reply: Reply, hits: tuple[Hit, ...]) -> None:
        super().__init__(f"request {request} of {tenant} brought back a marker of {hits[0].marker.owner}")
        self.request = request
        self.tenant = tenant
        self.ask = ask
        self.reply = reply
        self.hits = hits


@unique
class When(Enum):
    """When the lifeline failed, by what the heavy request was doing."""

    BEFORE = "no heavy request had been sent"
    EARLY = "the heavy request was within the time that reading it honestly takes"
    LATE = "the heavy request was past that time"
    AFTERWARDS = "the heavy request was over"


@unique
class Since(Enum):
    """What small requests got once the heavy request was over, or cancelled and its connection closed."""

    IN_TIME = "they were answered in time again"
    SLOW = "they were answered, and late"
    SILENT = "they were not answered any more"
    UNSEEN = "the budget was spent before that could be seen"


class LifelineFailed(StopRun):
    """The lifeline's request took too long or failed before, while or after a heavy request ran."""

    def __init__(
        self, what: str, *, request: int, when: When = When.LATE, since: Since = Since.SILENT
    ) -> None:
        super().__init__(what)
        self.request = request
        self.when = when
        self.since = since


class BudgetSpent(StopRun):
    """The run has used what it was given. `so_far` is what the scenario comes to without the rest."""

    def __init__(self, what: str, so_far: Outcome | None = None) -> None:
        super().__init__(what)
        self.so_far = so_far


def first_stop(group: BaseExceptionGroup[BaseException]) -> StopRun | None:
    """The gravest StopRun in a group: a foreign marker before anything else."""
    found, _ = group.split(StopRun)
    if found is None:
        return None
    stops = list(_leaves(found))
    return next((stop for stop in stops if isinstance(stop, ForeignMarkerSeen)), stops[0])


def _leaves(group: BaseExceptionGroup[StopRun]) -> Iterator[StopRun]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
