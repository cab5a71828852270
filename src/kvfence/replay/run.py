"""A replay from its settings to its verdict: which acts, in which order, on which deployments.

The next deployment is started while an act is still being looked at, so that the whole takes little longer
than its starts; only the leak, whose time is a figure, has the machine to itself.
"""

import contextlib
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from kvfence.protocol.errors import OperatorError
from kvfence.replay.acts import Act, Fence, Leak, Played, count_numbers
from kvfence.replay.fix import show_fix
from kvfence.replay.fleet import Flags, Fleet
from kvfence.replay.numbers import Sizes
from kvfence.replay.report import write_report
from kvfence.replay.scene import CONTEXT_TOKENS, INCIDENT, Play, fixed_flags
from kvfence.replay.secret import Secret
from kvfence.replay.stage import Stage
from kvfence.replay.trial import run_trial

SHOWN = 0
NOT_SHOWN = 1


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What is played. `html` is the report's file (None: no report)."""

    acts: tuple[Act, ...] = tuple(Act)
    fault: str = INCIDENT
    sizes: Sizes = field(default_factory=Sizes)
    secret: Secret = field(default_factory=Secret)
    html: Path | None = None

    def __post_init__(self) -> None:
        """Raise OperatorError for what cannot be played or written."""
        if not self.acts:
            raise OperatorError(
                f"no act is asked for: leave --act out, or give it one of {', '.join(map(str, Act))}"
            )
        if self.html is not None and (self.html.is_dir() or not self.html.absolute().parent.is_dir()):
            raise OperatorError(
                f"no report can be written to {self.html}: name a file in a directory that is there with "
                "--html, or leave the report out with --no-html"
            )


def replay(settings: ReplaySettings, environment: Mapping[str, str], console: Console) -> int:
    """Play the acts, write the report, and return 0 when each act showed what it says, else 1."""
    play = Play.of(settings.fault, settings.secret)
    stage = Stage(console)
    with _terminated_as_interrupted(), Fleet(environment) as fleet:
        played = _Replay(settings, play, fleet, stage).run()
    if settings.html is not None:
        write_report(settings.html, played)
    stage.close(played, settings.html)
    return SHOWN if played.holds else NOT_SHOWN


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end a replay as Ctrl-C does: deployments are taken down, and their files removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Replay:
    """One replay while it runs."""

    def __init__(self, settings: ReplaySettings, play: Play, fleet: Fleet, stage: Stage) -> None:
        self._settings, self._play, self._fleet, self._stage = settings, play, fleet, stage
        self._played = Played(play)

    def run(self) -> Played:
        """Every act that was asked for."""
        self._start_ahead(None)
        if Act.NUMBERS in self._settings.acts:
            with self._stage.act(Act.NUMBERS) as say:
                say("asking a page ledger of the incident's size")
                numbers = count_numbers(self._settings.sizes)
            self._keep(replace(self._played, numbers=numbers), Act.NUMBERS)
        if Act.LEAK in self._settings.acts:
            self._show_leak()
        if Act.FENCE in self._settings.acts:
            self._show_fence()
        if Act.FIX in self._settings.acts:
            self._show_fix()
        return self._played

    def _show_leak(self) -> None:
        flags = self._play.flags(None)
        with self._stage.act(Act.LEAK) as say:
            say("a deployment starts, with the fault on and every layer off")
            trial = run_trial(self._fleet.ready(flags, say), self._play, None, say)
            self._start_ahead(flags)
            self._fleet.retire(flags)
        self._keep(replace(self._played, leak=Leak(self._play, trial)), Act.LEAK)

    def _show_fence(self) -> None:
        trials = []
        with self._stage.act(Act.FENCE) as say:
            for layer in self._play.layers:
                flags = self._play.flags(layer)
                say(f"the layer {layer.value!r} alone: a deployment starts")
                deployment = self._fleet.ready(flags, say)
                self._start_ahead(flags)
                trials.append(run_trial(deployment, self._play, layer, say))
                self._fleet.retire(flags)
        self._keep(replace(self._played, fence=Fence(self._play, tuple(trials))), Act.FENCE)

    def _show_fix(self) -> None:
        fixed = fixed_flags("fit")
        with self._stage.act(Act.FIX) as say:
            say("a deployment starts, with nothing broken")
            deployment = self._fleet.ready(fixed, say)
            refusing = self._fleet.start(fixed_flags(str(CONTEXT_TOKENS)))
            result = show_fix(refusing, deployment, self._play, say)
        self._keep(replace(self._played, fix=result), Act.FIX)

    def _keep(self, played: Played, act: Act) -> None:
        self._played = played
        self._stage.show(played, act)

    def _start_ahead(self, after: Flags | None) -> None:
        """Start the deployment that comes after this one, or the first."""
        needed = self._needed()
        index = 0 if after is None else needed.index(after) + 1
        if index < len(needed):
            self._fleet.start(needed[index])

    def _needed(self) -> list[Flags]:
        """Return the flags of all deployments that serve, in their order."""
        acts, play = self._settings.acts, self._play
        leak = [play.flags(None)] if Act.LEAK in acts else []
        fence = [play.flags(layer) for layer in play.layers] if Act.FENCE in acts else []
        fix = [fixed_flags("fit")] if Act.FIX in acts else []
        return [*leak, *fence, *fix]
