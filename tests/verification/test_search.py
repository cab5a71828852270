"""Searches: levels, limits, several processes, the shortest counterexample."""

from dataclasses import replace

import pytest

from kvfence.protocol import Decisions
from kvfence.protocol.decisions import CORRECT
from kvfence.verification import SCOPES, Limits, Why, search
from kvfence.verification.engine import Engine
from kvfence.verification.scopes import Weather
from kvfence.verification.worker import Worker
from kvfence.world import Kind
from kvfence.world import happenings as h

SMALL = SCOPES["late-writer"]


class AbortIsQuiet(Decisions):
    """A client that left is taken for a writer that is done."""

    def abort_is_quiet(self) -> bool:
        """Yes."""
        return True


class Breaks(Decisions):
    """A core that fails."""

    def fits_pool(self, needed_tokens: int, pool_tokens: int) -> bool:
        """Not so."""
        raise ZeroDivisionError


def test_a_scope_that_closes_says_so_with_its_figures():
    report = search(SMALL, CORRECT)
    assert report.why is Why.CLOSED
    assert report.counterexample is None
    assert report.transitions > report.states > 100
    assert report.performed < report.transitions, "most of it came from memory"
    assert report.depth > 10
    assert report.rows_taken > 20
    assert report.stored_bytes > 8 * report.states


def test_levels_are_reported_one_by_one():
    levels = []
    report = search(SMALL, CORRECT, progress=levels.append)
    assert [level.depth for level in levels] == list(range(1, report.depth + 1))
    assert levels[-1].states == report.states
    assert levels[-1].frontier == 0


def test_two_processes_see_what_one_sees():
    scope = SCOPES["leave"]
    widths = []
    one = search(scope, CORRECT, progress=lambda level: widths.append(level.frontier))
    two = search(scope, CORRECT, jobs=2, limits=Limits(wide=10))
    assert one.why is two.why is Why.CLOSED
    assert max(widths) > 50, "else nothing was divided"
    assert (two.states, two.transitions, two.depth) == (one.states, one.transitions, one.depth)
    assert two.taken == one.taken


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(states_max=50), Why.STATES),
        (Limits(memory_mib=0), Why.MEMORY),
    ],
    ids=lambda value: value.value if isinstance(value, Why) else "",
)
def test_a_limit_ends_it_and_is_named(limits, why):
    assert search(SMALL, CORRECT, limits=limits).why is why


def test_a_scope_with_a_depth_stops_there():
    report = search(replace(SMALL, depth=3), CORRECT)
    assert report.why is Why.DEPTH
    assert report.depth == 3


def test_what_is_found_is_found_in_the_fewest_steps():
    found = search(SCOPES["leave"], AbortIsQuiet()).counterexample
    assert found is not None
    assert found.findings[0].kind is Kind.LATE_WRITE
    assert len(found.happenings) == 9
    assert any(isinstance(happening, h.Leave) for happening in found.happenings)
    assert isinstance(found.happenings[-1], h.Land)


class NobodyIsAdmitted(Decisions):
    """A deployment that is safe because it does nothing."""

    def admits(self, needed_tokens: int, limit_tokens: int) -> bool:
        """No."""
        return False


class NothingIsComputed(Decisions):
    """Another one: every prompt comes too late."""

    def refuses_late_prefill(self, *, lease_is_closed: bool) -> bool:
        """Yes."""
        return True


@pytest.mark.parametrize("decisions", [NobodyIsAdmitted(), NothingIsComputed()])
def test_who_serves_nobody_without_any_weather_is_found(decisions):
    found = search(SCOPES["pair"], decisions).counterexample
    assert found is not None
    assert found.findings[0].kind is Kind.UNSERVED


def test_who_is_sent_away_in_bad_weather_is_no_finding():
    """The client that leaves, the crash and the lost message end requests, as they may."""
    for name in ("leave", "crash-router", "limits"):
        assert search(SCOPES[name], CORRECT).why is Why.CLOSED


def test_who_is_served_is_not_taken_for_one_who_left():
    """A client's part says that it has heard its end, and not which: how it ended is asked of the world.

    Here a row makes way for another one, and its client may leave before it comes back.
    """
    limits = SCOPES["limits"]
    scope = replace(limits, asks=limits.asks[:2], weather=Weather(leave=1))
    assert search(scope, CORRECT).counterexample is None


def test_it_is_found_by_several_processes_too():
    one = search(SCOPES["smoke"], AbortIsQuiet()).counterexample
    two = search(SCOPES["smoke"], AbortIsQuiet(), jobs=2, limits=Limits(wide=10)).counterexample
    assert one is not None and two is not None
    assert len(one.happenings) == len(two.happenings)


def test_kinds_that_are_ignored_do_not_end_it():
    report = search(SCOPES["leave"], AbortIsQuiet(), ignored=frozenset({Kind.LATE_WRITE}))
    assert report.counterexample is None or report.counterexample.findings[0].kind is not Kind.LATE_WRITE


def test_a_core_that_breaks_is_a_finding_and_not_the_end_of_the_search_program():
    found = search(SMALL, Breaks()).counterexample
    assert found is not None
    assert found.findings[0].kind is Kind.LAW
    assert "ZeroDivisionError" in found.findings[0].what


def test_workers_divide_a_level_and_no_state_is_counted_twice():
    whole, halves = Worker(Engine(SMALL, CORRECT), frozenset()), []
    whole.begin()
    for _ in range(6):
        whole.accept(whole.decide(whole.expand(), 0))
    for number in range(2):
        worker = Worker(Engine(SMALL, CORRECT), frozenset())
        worker.begin()
        for _ in range(5):
            worker.accept(worker.decide(worker.expand(), 0))
        worker.divide(number, 2)
        halves.append(worker)
    asked = [worker.expand() for worker in halves]
    decided = [worker.decide([shares[n] for shares in asked], 0) for n, worker in enumerate(halves)]
    new = sum(worker.accept([answers[n] for answers in decided]) for n, worker in enumerate(halves))
    assert new == len(whole.frontier)


def test_a_path_leads_to_its_state():
    worker = Worker(Engine(SMALL, CORRECT), frozenset())
    worker.begin()
    for _ in range(8):
        worker.accept(worker.decide(worker.expand(), 0))
    index, state = worker.frontier[-1]
    engine, reached = worker.engine, worker.engine.start()
    for happening in worker.path_to(index):
        move = next(move for move in engine.enabled(reached) if move.happening == happening)
        reached, _ = engine.after(reached, move)
    assert reached == state
