"""mixed-constraints: a row that moved bounds another request; alone, or on a healthy server, each obeys its own."""

import pytest
from tests.check.scenarios.word_server import deaf, word_of
from tests.check.scripted_bench import ScriptedBench, answered, play

from kvfence.check.reply import Failure
from kvfence.check.scenarios.mixed_constraints import COUNTING, SCENARIO, is_over
from kvfence.report import Severity, Verdict

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"] * 10


def bounded(sent, bounds, word=None):
    """The answer to a request under the bounds of `bounds`, which a healthy server takes from itself."""
    limit = bounds.max_tokens or 100
    if sent.text == COUNTING:
        said = NUMBERS[:limit]
        return answered(" ".join(said), completion_tokens=len(said), finish="length")
    text = word or word_of(sent)
    for stop in bounds.stop:
        text = text.split(stop)[0]
    return answered(text, completion_tokens=3)


def healthy(sent):
    return bounded(sent, sent.ask)


class MovedRow:
    """Every `every`th request among others is bounded by another's row."""

    def __init__(self, every=4, what="bounds"):
        self.every, self.what, self.count, self.bench = every, what, 0, None

    def __call__(self, sent):
        others = self.bench.in_flight_with(sent)
        self.count += bool(others)
        if not others or self.count % self.every:
            return healthy(sent)
        other = max(others, key=lambda one: one.ask.max_tokens or 0)
        if self.what == "words" and other.text != COUNTING:
            return bounded(sent, sent.ask, word_of(other))
        return bounded(sent, other.ask)


def mixed(script):
    bench = ScriptedBench(script)
    if isinstance(script, MovedRow):
        script.bench = bench
    return play(SCENARIO, bench), bench


def test_a_row_that_moved_is_a_leak():
    outcome, bench = mixed(MovedRow(every=3))
    assert outcome.verdict is Verdict.LEAK
    (sighting,) = outcome.sightings
    assert (sighting.code, sighting.severity) == ("KVF212", Severity.HIGH)
    assert bench.most_at_once == 8


def test_only_limits_that_moved_have_their_own_code():
    class Longer(MovedRow):
        def __call__(self, sent):
            return super().__call__(sent) if sent.text == COUNTING else healthy(sent)

    outcome, _ = mixed(Longer(every=3))
    assert outcome.verdict is Verdict.LEAK
    assert outcome.sightings[0].code == "KVF211"


def test_one_answer_that_is_too_long_is_said_and_is_no_leak_yet():
    class Once(MovedRow):
        def __call__(self, sent):
            if sent.text == COUNTING and sent.ask.max_tokens == 5 and self.bench.in_flight_with(sent):
                self.count += 1
                if self.count == 1:
                    return answered("x", completion_tokens=6)
            return healthy(sent)

    outcome, _ = mixed(Once())
    assert outcome.verdict is Verdict.EXPOSED
    assert outcome.sightings[0].code == "KVF211"


def test_a_healthy_server():
    outcome, _ = mixed(healthy)
    assert outcome.verdict is Verdict.NO_EVIDENCE, outcome.why
    assert (outcome.opportunities, outcome.sensitivity) == (40, 1.0)


def test_a_server_without_stop_strings_mixes_none_up():
    def ignores(sent):
        return healthy(sent) if sent.text == COUNTING else answered(word_of(sent), completion_tokens=3)

    outcome, bench = mixed(ignores)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.sensitivity == 5 / 8
    assert bench.most_at_once == 5
    assert "stop string is not obeyed even alone" in outcome.notes[0]


def test_a_server_that_ignores_max_tokens_is_exposed():
    def endless(sent):
        return answered("x", completion_tokens=40) if sent.text == COUNTING else healthy(sent)

    outcome, bench = mixed(endless)
    assert outcome.verdict is Verdict.EXPOSED
    assert bench.most_at_once == 1


def test_a_model_that_repeats_nothing():
    assert mixed(deaf)[0].verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("reply", "over"),
    [
        (answered("x", completion_tokens=5), False),
        (answered("x", completion_tokens=6), True),
        (answered("x", chunk_times_s=(0.1,) * 7), False),
        (answered("x", chunk_times_s=(0.1,) * 8), True),
        (answered("x", chunk_times_s=(0.1,) * 8, failure=Failure.HUNG_UP), True),
    ],
)
def test_too_long_by_count_or_by_pieces(reply, over):
    assert is_over(reply, 5) is over
