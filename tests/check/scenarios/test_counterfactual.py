"""counterfactual: exact interference is a leak, noise is not, and a deaf model says nothing."""

import dataclasses
import random

import pytest
from tests.check.scenarios.quote_server import copying, last_line
from tests.check.scripted_bench import ScriptedBench, answered, play, refused

from kvfence.check.scenario import Size
from kvfence.check.scenarios.counterfactual import REPEATS, SCENARIO, Series
from kvfence.report import Severity, Verdict


class Interfering:
    """What one is told hangs on the words of the request before, or beside, it."""

    def __init__(self, *, is_beside=False, share=1.0, text=lambda own, sign: own if sign else f"{own} so"):
        self.is_beside, self.share, self.text = is_beside, share, text
        self.last, self.random = "", random.Random(5)
        self.bench = ScriptedBench(self)

    def __call__(self, sent):
        if sent.ask.mark == "beside":
            self.last = sent.text
            return copying(sent)
        if self.is_beside and not self.bench.in_flight_with(sent):
            return copying(sent)
        sign = sum(map(ord, self.last[:5])) % 2 == 0
        if self.random.random() >= self.share:
            sign = not sign
        return answered(self.text(last_line(sent), sign), prompt_tokens=sent.tokens)


def found_by(script, seeds=range(4)):
    """Outcomes for some seeds: a pair whose two contents have the same sign shows nothing."""
    outcomes = []
    for seed in seeds:
        script.bench = ScriptedBench(script, seed=seed, size=Size(rounds=4))
        outcomes.append(play(SCENARIO, script.bench))
    return outcomes


@pytest.mark.parametrize("is_beside", [False, True])
def test_content_that_decides_is_a_leak(is_beside):
    outcomes = found_by(Interfering(is_beside=is_beside))
    leaks = [outcome for outcome in outcomes if outcome.verdict is Verdict.LEAK]
    assert leaks
    (sighting,) = leaks[0].sightings
    assert (sighting.code, sighting.severity) == ("KVF202", Severity.CRITICAL)
    assert sighting.evidence["trials"] == 4 * REPEATS
    assert sighting.evidence["way"] == ("beside" if is_beside else "after")


def test_a_difference_in_log_probabilities_alone_is_one_too():
    class Slightly(Interfering):
        def __call__(self, sent):
            reply = super().__call__(sent)
            sign = 0.25 if reply.content.endswith(" so") else 0.5
            return dataclasses.replace(copying(sent), top_logprobs=((("a", -sign),),))

    assert Verdict.LEAK in {outcome.verdict for outcome in found_by(Slightly())}


def test_noise_that_hangs_together_with_content_is_not():
    outcomes = found_by(Interfering(share=0.8))
    assert {outcome.verdict for outcome in outcomes} <= {Verdict.INCONCLUSIVE, Verdict.NO_EVIDENCE}
    assert any("did not give equal answers" in " ".join(outcome.notes) for outcome in outcomes)


def test_a_healthy_server():
    outcome = play(SCENARIO, ScriptedBench(copying))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.opportunities == 2 * 2 * REPEATS
    assert outcome.sensitivity == 1


def test_a_server_that_draws_is_inconclusive():
    source = random.Random(3)
    bench = ScriptedBench(lambda sent: answered(f"{source.random()}", prompt_tokens=sent.tokens))
    assert play(SCENARIO, bench).verdict is Verdict.INCONCLUSIVE


def test_an_answer_that_follows_nothing_is_inconclusive():
    outcome = play(SCENARIO, ScriptedBench(lambda sent: answered("always", prompt_tokens=sent.tokens)))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "its own prompt" in outcome.why


def test_contents_of_different_lengths_are_skipped():
    bench = ScriptedBench(lambda sent: answered(last_line(sent), prompt_tokens=sum(map(ord, sent.text[:2]))))
    assert play(SCENARIO, bench).verdict is Verdict.INCONCLUSIVE


def test_no_answers_at_all():
    assert play(SCENARIO, ScriptedBench(lambda _: refused())).verdict is Verdict.INCONCLUSIVE


def test_a_series_is_exact_only_without_holes():
    same, other = ("x", ()), ("y", ())
    assert Series((same, same), (other, other)).is_split
    assert not Series((same, same), (same, same)).is_split
    assert not Series((same, None), (other, other)).is_exact
    assert not Series((same, other), (other, other)).is_exact
