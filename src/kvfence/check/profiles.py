"""Profiles: how much of everything a run does, from two minutes to hours."""

from dataclasses import dataclass
from difflib import get_close_matches

from kvfence.check.budget import Limits
from kvfence.check.scenario import Scenario, Size
from kvfence.protocol.errors import OperatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`is_short` takes only what is cheapest; `hours` set: it goes round until they are over.

    `first` names what runs before everything else, in this order.
    """

    name: str
    what: str
    size: Size
    limits: Limits
    is_short: bool = False
    hours: float | None = None
    first: tuple[str, ...] = ()

    def takes(self, scenario: Scenario) -> bool:
        """Whether a scenario is part of it, needs and hazards apart."""
        return scenario.is_in_quick or not self.is_short

    def place_of(self, scenario: Scenario) -> int:
        """Where a scenario stands among those of this profile."""
        return self.first.index(scenario.name) if scenario.name in self.first else len(self.first)


QUICK = Profile(
    name="quick",
    what="the cheapest scenarios, in two minutes",
    size=Size(rounds=1),
    limits=Limits(requests=400, seconds=120.0),
    is_short=True,
    first=("one-word", "boundary"),
)
STANDARD = Profile(
    name="standard",
    what="every scenario, sized for a first answer",
    size=Size(rounds=2),
    limits=Limits(requests=6_000, seconds=3_600.0),
)
DEEP = Profile(
    name="deep",
    what="every scenario, five times as much, and the edge is located",
    size=Size(rounds=10, locates_edge=True),
    limits=Limits(requests=60_000, seconds=6 * 3_600.0),
)
PROFILES = {profile.name: profile for profile in (QUICK, STANDARD, DEEP)}


def profile_named(name: str, hours: float | None = None) -> Profile:
    """The profile of that name; `soak` goes round `standard` for so many hours. Raises OperatorError."""
    if name == "soak":
        if hours is None or hours <= 0:
            raise OperatorError("the profile soak wants a duration: --hours 8, for example")
        return Profile(
            name="soak",
            what=f"every scenario, round after round, for {hours:g} hours",
            size=STANDARD.size,
            limits=Limits(seconds=hours * 3_600.0),
            hours=hours,
        )
    if hours is not None:
        raise OperatorError(f"--hours belongs to the profile soak, not to {name}")
    profile = PROFILES.get(name)
    if profile is None:
        close = get_close_matches(name, (*PROFILES, "soak"), n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(PROFILES)} and soak"
        raise OperatorError(f"there is no profile {name!r}: {hint}")
    return profile
