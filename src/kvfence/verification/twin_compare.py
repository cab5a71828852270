"""Holds the shipped cores against the twin: both explore one scope, and must come to the same states.

The cores are explored by the explorer's own engine, with nothing renamed, and each state that is reached is
reduced to the twin's variables (`projection.py`). The twin's states are those that TLC writes down. Sets are
compared, not only their sizes: a state that one of the two has alone is a bug of one of them.
"""

import sys
from argparse import ArgumentParser
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kvfence.protocol import CORRECT, Decisions
from kvfence.protocol.errors import InternalError, OperatorError
from kvfence.verification.engine import Engine
from kvfence.verification.layout import State as Parts
from kvfence.verification.projection import project
from kvfence.verification.remembered import RememberedWorld
from kvfence.verification.twin import TwinTool, find_tool, run_twin
from kvfence.verification.twin_scopes import TWIN_SCOPES, TwinScope
from kvfence.verification.twin_states import State
from kvfence.world import InPlace, World, make_world

_BEGIN, _END = "<!-- twin: begin -->", "<!-- twin: end -->"
STATES_MAX = 5_000_000  # of the cores, in one scope


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the two came to. `only_*` have the states that one of them has alone."""

    scope: TwinScope
    core_states: int  # before they are reduced
    twin_states: int  # as TLC counts them
    projected: int
    only_cores: frozenset[State]
    only_twin: frozenset[State]

    @property
    def is_equal(self) -> bool:
        """Whether they have the very same states."""
        return not self.only_cores and not self.only_twin and self.projected == self.twin_states


def compare(scope: TwinScope, folder: Path, tool: TwinTool) -> Comparison:
    """Explore the scope with both. Raises InternalError where a law is broken in one of them."""
    twin = run_twin(folder, scope, tool, keeps_states=True)
    if twin.broken is not None or twin.distinct_states is None:
        raise InternalError(f"The twin breaks {twin.broken} in {scope.name}: read twin/Transfer.tla again.")
    core_states, projected = explore_cores(scope)
    return Comparison(
        scope,
        core_states,
        twin.distinct_states,
        len(projected),
        projected - twin.states,
        twin.states - projected,
    )


def explore_cores(
    scope: TwinScope, decisions: Decisions = CORRECT, *, by_key: bool = False
) -> tuple[int, frozenset[State]]:
    """Return how many states the cores reach, and what these look like to the twin.

    `by_key`: states are the same when the explorer's key says so, as in `kvfence verify`. Where nothing can
    be renamed (one lease), not one state of the projection may be missing then.
    """
    for_cores = scope.for_cores()
    engine = Engine(for_cores, decisions, symmetric=False)
    base = make_world(for_cores.config, decisions, for_cores.by_number, InPlace())
    start = engine.start()
    key_of: Callable[[Parts], Hashable] = engine.key_of if by_key else _without_budget
    seen, todo = {key_of(start)}, deque([start])
    projected = set()
    while todo:
        state = todo.popleft()
        projected.add(project(_world_of(engine, state, base), scope.leases))
        for after in _steps(engine, scope, state):
            key = key_of(after)
            if key not in seen:
                seen.add(key)
                todo.append(after)
        if len(seen) > STATES_MAX:
            raise InternalError(f"{scope.name} has more than {STATES_MAX} states: it was meant to close.")
    return len(seen), frozenset(projected)


def _steps(engine: Engine, scope: TwinScope, state: Parts) -> Iterator[Parts]:
    for move in engine.enabled(state):
        if not scope.admits(move.happening):
            continue
        after, findings = engine.after(state, move)
        if findings:
            raise InternalError(f"{scope.name}: {findings} after {move.happening}: run `kvfence verify`.")
        yield after


def _without_budget(state: Parts) -> Parts:
    """What weather is left is the explorer's own; a scope of the twin has enough of it everywhere."""
    return state[:-1]


def _world_of(engine: Engine, state: Parts, base: World) -> World:
    return RememberedWorld(engine.layout, state, base)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare scopes and print a table; 0 when all are equal, 1 when one is not, 2 when a tool is missing."""
    parser = ArgumentParser(prog="python -m kvfence.verification.twin_compare")
    parser.add_argument("folder", type=Path, help="the folder with the model")
    names = [scope.name for scope in TWIN_SCOPES]
    parser.add_argument("--scope", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this document as well")
    given = parser.parse_args(arguments)
    console = Console()
    try:
        tool = find_tool()
        chosen = [scope for scope in TWIN_SCOPES if scope.name in (given.scope or names)]
        results: list[Comparison] = []
        for scope in chosen:
            with console.status(f"{scope.name}: {scope.what}"):
                results.append(compare(scope, given.folder, tool))
            if given.write is not None:
                given.write.write_text(with_table(given.write.read_text(), results))
    except OperatorError as error:
        console.print(str(error))
        return 2
    console.print(report(results))
    return 0 if all(result.is_equal for result in results) else 1


def report(results: Sequence[Comparison]) -> Table:
    """Draw what was found."""
    table = Table(title="Distinct states of the projection")
    table.add_column("scope", no_wrap=True)
    for column in ("twin (TLC)", "cores, projected", "cores, before", "equal"):
        table.add_column(column, justify="right")
    for result in results:
        alone = f"no: {len(result.only_twin)} the twin's alone, {len(result.only_cores)} the cores'"
        table.add_row(
            result.scope.name,
            f"{result.twin_states:,}",
            f"{result.projected:,}",
            f"{result.core_states:,}",
            "yes" if result.is_equal else alone,
        )
    return table


def with_table(document: str, results: Sequence[Comparison]) -> str:
    """Put the figures between the two marks of a document."""
    before, mark, rest = document.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not mark or not end:
        raise OperatorError(f"The document has no place for the table: put {_BEGIN} and {_END} into it.")
    rows = [
        "| scope | what can happen | twin, counted by TLC | cores, projected | equal, state by state |",
        "| --- | --- | ---: | ---: | --- |",
        *(
            f"| `{found.scope.name}` | {found.scope.what} | {found.twin_states:,} | {found.projected:,}"
            f" | {'yes' if found.is_equal else '**no**'} |"
            for found in results
        ),
    ]
    table = "\n".join(rows)
    return f"{before}{mark}\n{table}\n{end}{after}"


if __name__ == "__main__":
    sys.exit(main())
