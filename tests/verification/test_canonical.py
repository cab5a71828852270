"""States with one key behave alike, and a key is the same in every process."""

import subprocess
import sys

import pytest
from tests.verification.walks import scope_of, walk

from kvfence.protocol.decisions import CORRECT
from kvfence.verification import Why, search
from kvfence.verification.engine import Engine
from kvfence.verification.scopes import Scope, Weather, ask, small

WEATHERS = (
    Weather(leave=1, drop=1, repeat=1),
    Weather(crash_prefill=1),
    Weather(crash_router=1, pause=1),
    Weather(suspect=1, lease_timer=1),
    Weather(fail_loud=1, fail_quiet=1, cut_fails=1, batch_timer=1),
)
SEVERAL_PAGES = Scope(
    name="several pages",
    what="",
    asks=(ask(1, "anna", 1, 2), ask(2, "berta", 1, 2)),
    kinds=((1, 2),),
    config=small(page_tokens=2, prefill_pages=3, decode_pages=4),
    weather=Weather(leave=1, lease_timer=1),
)


def successors(engine, state):
    moves = engine.enabled(state)
    return sorted({(type(m.happening).__name__, engine.key_of(engine.after(state, m)[0])) for m in moves})


def compare(scope, states_max):
    """Visit states; wherever two have one key, compare what can follow. Return how often that was."""
    engine = Engine(scope, CORRECT)
    start = engine.start()
    seen = {engine.key_of(start): start}
    queue, compared = [start], 0
    for state in queue:
        for move in engine.enabled(state):
            new, _ = engine.after(state, move)
            known = seen.setdefault(engine.key_of(new), new)
            if known is new:
                queue.append(new)
            elif known != new:
                compared += 1
                assert successors(engine, known) == successors(engine, new), move.happening
        if len(seen) > states_max:
            break
    return compared


@pytest.mark.parametrize("weather", WEATHERS, ids=lambda weather: "·".join(map(str, weather.counts())))
def test_states_of_one_key_have_successors_of_the_same_keys(weather):
    assert compare(scope_of(weather, alike=True), 2_500) > 0


def test_the_same_holds_where_pages_and_epochs_are_many():
    assert compare(SEVERAL_PAGES, 4_000) > 0


def test_symmetry_can_be_switched_off_and_saves_states():
    scope = scope_of(Weather(), alike=True)
    alike = search(scope, CORRECT)
    differ = search(scope, CORRECT, symmetric=False)
    assert alike.why is differ.why is Why.CLOSED
    assert 0 < alike.states < differ.states


SCRIPT = """
from kvfence.protocol.decisions import CORRECT
from kvfence.verification.engine import Engine
from tests.verification.walks import WEATHERS, scope_of, walk
engine = Engine(scope_of(WEATHERS["crashes"], is_wide=True), CORRECT)
print([engine.key_of(new) for _, _, new in walk(engine, 30, 5)])
"""


def test_keys_are_the_same_in_every_process():
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].count(",") > 20


def test_a_key_forgets_numbers_and_not_where_they_differ():
    engine = Engine(scope_of(Weather(leave=1), alike=True), CORRECT)
    keys = [engine.key_of(new) for _, _, new in walk(engine, 40, 1)]
    assert len(set(keys)) == len(keys), "a run of this scope never comes back to a state"
