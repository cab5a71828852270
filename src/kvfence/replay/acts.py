"""The four acts as results: what each showed, and whether it showed what it says.

Each result is data. The terminal and the report draw it, the exit code counts `holds`, and nothing here
knows how it is drawn. Act 4's is in `fix.py`, since it is more than a trial.
"""

from dataclasses import dataclass
from enum import IntEnum, unique

from kvfence.protocol.errors import OperatorError
from kvfence.replay.fix import Fix
from kvfence.replay.numbers import Accounting, Figure, Sizes, account, figures
from kvfence.replay.page_map import PageMap, map_of_model
from kvfence.replay.scaled import ScaledLeak, scaled_leak
from kvfence.replay.scene import Play
from kvfence.replay.trial import Trial
from kvfence.serving.config import check_context


@unique
class Act(IntEnum):
    """The acts by number."""

    NUMBERS = 1
    LEAK = 2
    FENCE = 3
    FIX = 4

    @property
    def title(self) -> str:
        """What it is called."""
        return TITLES[self]


TITLES: dict[Act, str] = {
    Act.NUMBERS: "The numbers",
    Act.LEAK: "The leak",
    Act.FENCE: "The fence",
    Act.FIX: "The fix",
}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Act 1. `refusal` is what `kvfence serve` says to these sizes (None: it would start)."""

    accounting: Accounting
    figures: tuple[Figure, ...]
    scaled: ScaledLeak
    refusal: str | None

    @property
    def page_map(self) -> PageMap:
        """The scaled-down pool, drawn."""
        return map_of_model(self.scaled)

    @property
    def holds(self) -> bool:
        """Whether every published figure comes out, and one slot of the scaled-down pool is B's own."""
        return (
            all(figure.agrees for figure in self.figures)
            and len(self.scaled.foreign) == len(self.scaled.read) - 1
        )


def count_numbers(sizes: Sizes) -> Numbers:
    """Play act 1."""
    accounting = account(sizes)
    try:
        check_context(sizes.context_tokens, sizes.pool_tokens, "prefill")
        refusal = None
    except OperatorError as error:
        refusal = str(error)
    return Numbers(accounting, figures(accounting), scaled_leak(sizes.page_tokens), refusal)


@dataclass(frozen=True, slots=True)
class Leak:
    """Act 2: the fault is on and every layer is off."""

    play: Play
    trial: Trial

    @property
    def holds(self) -> bool:
        """Whether it leaked; of the incident, with A's words in an answer that looks like any other."""
        answer = self.trial.answer
        if not self.play.is_incident:
            return self.trial.leaked
        return bool(self.trial.words) and answer.is_whole and answer.prompt_tokens == self.trial.sent_tokens


@dataclass(frozen=True, slots=True)
class Fence:
    """Act 3: the same prompts, one layer on at a time."""

    play: Play
    trials: tuple[Trial, ...]

    @property
    def holds(self) -> bool:
        """Whether each layer that is expected to stop it did, by itself; for some faults there is none."""
        is_tried = bool(self.trials) == bool(self.play.layers)
        return is_tried and all(trial.is_stopped for trial in self.trials)


@dataclass(frozen=True, slots=True)
class Played:
    """What was played of a replay; an act that was not is None."""

    play: Play
    numbers: Numbers | None = None
    leak: Leak | None = None
    fence: Fence | None = None
    fix: Fix | None = None

    @property
    def verdicts(self) -> dict[Act, bool]:
        """Whether each act that was played showed what it says."""
        results = {Act.NUMBERS: self.numbers, Act.LEAK: self.leak, Act.FENCE: self.fence, Act.FIX: self.fix}
        return {act: result.holds for act, result in results.items() if result is not None}

    @property
    def holds(self) -> bool:
        """Whether all of them did."""
        return all(self.verdicts.values())
