"""one-word: words that change hands are a leak, and nothing else is."""

from tests.check.scenarios.word_server import Mixing, deaf, obedient, word_of
from tests.check.scripted_bench import ScriptedBench, answered, play

from kvfence.check.scenario import Size
from kvfence.check.scenarios.one_word import SCENARIO
from kvfence.check.scenarios.saying import WORDS
from kvfence.report import Severity, Verdict


def one_word(script, **options):
    bench = ScriptedBench(script, **options)
    if isinstance(script, Mixing):
        script.bench = bench
    return play(SCENARIO, bench), bench


def test_words_that_change_hands_are_a_leak():
    outcome, bench = one_word(Mixing(every=3))
    assert outcome.verdict is Verdict.LEAK
    (sighting,) = outcome.sightings
    assert (sighting.code, sighting.severity) == ("KVF212", Severity.CRITICAL)
    assert sighting.evidence["foreign"] == 8
    assert sighting.evidence["serial_foreign"] == 0
    assert [sent.ask.mark for sent in bench.asked[-4:]] == ["control"] * 4


def test_mixed_answers_are_one_too():
    outcome, _ = one_word(Mixing(every=4, say=lambda own, other: f"{own} {other}"))
    assert outcome.verdict is Verdict.LEAK


def test_a_healthy_server():
    outcome, bench = one_word(obedient, size=Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.opportunities == 48
    assert outcome.sensitivity == 1.0
    assert bench.most_at_once == 4
    assert {sent.tenant for sent in bench.asked} == {"a", "b"}


def test_one_foreign_word_is_looked_for_again_and_says_nothing():
    class Once(Mixing):
        def __call__(self, sent):
            reply = super().__call__(sent)
            if self.count == self.every:
                self.every = 10**9
            return reply

    outcome, bench = one_word(Once(every=5))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert len(bench.asked) == 4 + 2 * 24 + 4


def test_a_model_that_says_all_words_to_everybody_is_no_leak():
    told = []

    def parrot(sent):
        told.append(word_of(sent))
        return obedient(sent) if len(told) <= 4 else answered(" ".join(told[:4]))

    assert one_word(parrot)[0].verdict is Verdict.INCONCLUSIVE


def test_words_that_go_missing_at_once_are_suspect_with_a_p_value():
    bench = ScriptedBench(None)

    def loses(sent):
        return deaf(sent) if bench.in_flight_with(sent) else obedient(sent)

    def half(sent):
        return deaf(sent) if bench.in_flight_with(sent) and sent.number % 2 else obedient(sent)

    bench.script = half
    outcome = play(SCENARIO, bench)
    assert outcome.verdict is Verdict.SUSPECT
    assert 0 < outcome.p_value < 1
    bench.script, bench.asked = loses, []
    assert play(SCENARIO, bench).verdict is Verdict.INCONCLUSIVE


def test_a_model_that_repeats_nothing():
    outcome, bench = one_word(deaf)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert all(sent.ask.mark == "control" for sent in bench.asked)


def test_a_server_that_hands_words_on_one_at_a_time_too_is_suspect():
    told = []

    def hands_on(sent):
        told.append(word_of(sent))
        return obedient(sent) if len(told) <= 4 else answered(f"{told[-1]} {told[-2]}")

    outcome, _ = one_word(hands_on)
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.p_value < 1e-6
    (sighting,) = outcome.sightings
    assert (sighting.code, sighting.evidence["never_sent_came_back"]) == ("KVF212", 0)


def test_a_model_that_makes_words_up_is_not():
    def makes_up(sent):
        made = WORDS[(WORDS.index(word_of(sent)) * 7 + 3) % len(WORDS)]
        return obedient(sent) if sent.number <= 4 else answered(f"{word_of(sent)} {made}")

    outcome, _ = one_word(makes_up)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "that nobody was given" in outcome.why


def test_a_model_that_strays_only_when_it_is_asked_alone_is_calm():
    def strays_first(sent):
        return answered("lagoon") if sent.number == 1 else obedient(sent)

    outcome, bench = one_word(strays_first)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert len(bench.asked) == 5 + 24
