"""plausibility: what cannot be true is named; what may be, is not."""

import dataclasses

import pytest
from tests.check.scripted_bench import ScriptedBench, answered, count_words, plain_known, play, refused

from kvfence.check.known import TokenCounter
from kvfence.check.reply import Failure
from kvfence.check.scenarios.plausibility import SCENARIO
from kvfence.report import Verdict

TEMPLATE = 30


def healthy(sent, **changes):
    tokens = min(sent.ask.max_tokens, 12)
    facts = {
        "prompt_tokens": sent.tokens + TEMPLATE,
        "completion_tokens": tokens,
        "cached_tokens": 0,
        "finish": "length" if tokens == sent.ask.max_tokens else "stop",
        "chunk_times_s": tuple(0.1 + index / 100 for index in range(tokens)) if sent.ask.is_streaming else (),
    }
    return answered("and " * tokens, **(facts | changes))


def now_and_then(**changes):
    def script(sent):
        return healthy(sent, **changes) if sent.number % 5 == 0 else healthy(sent)

    return script


def plausible(script, **known):
    bench = ScriptedBench(script, known=plain_known(**known))
    return play(SCENARIO, bench), bench


@pytest.mark.parametrize(
    ("changes", "code", "fault"),
    [
        ({"failure": Failure.ERROR_EVENT}, "KVF214", "error-inside-a-200"),
        ({"completion_tokens": 25}, "KVF211", "longer-than-its-max_tokens"),
        ({"cached_tokens": 5_000}, "KVF213", "more-cached-tokens-than-prompt-tokens"),
        ({"prompt_tokens": 190, "cached_tokens": 190}, "KVF213", "a-new-prompt-cached-as-a-whole"),
        ({"finish": "length", "completion_tokens": 0}, "KVF213", "finish-length-below-its-max_tokens"),
        ({"chunk_times_s": (0.1,) * 20}, "KVF213", "more-pieces-of-text-than-completion-tokens"),
        ({"prompt_tokens": 1}, "KVF213", "prompt-tokens-that-were-not-sent"),
        ({"prompt_tokens": 2_000}, "KVF213", "prompt-tokens-that-were-not-sent"),
    ],
)
def test_what_cannot_be_true_is_named(changes, code, fault):
    outcome, _ = plausible(now_and_then(**changes))
    assert outcome.verdict is Verdict.EXPOSED
    assert (code, fault) in {(one.code, one.subject_key) for one in outcome.sightings}


def test_a_healthy_server():
    outcome, bench = plausible(healthy)
    assert outcome.verdict is Verdict.NO_EVIDENCE, outcome.why
    assert (outcome.opportunities, outcome.sensitivity) == (18, 1.0)
    assert {sent.ask.is_streaming for sent in bench.asked} == {True, False}
    assert not outcome.notes


def test_another_tokenizer_than_our_count_is_no_fault():
    counter = TokenCounter(count=lambda text: round(0.8 * count_words(text)), how="bytes", error=0.2)
    assert plausible(healthy, counter=counter)[0].verdict is Verdict.NO_EVIDENCE


def test_without_usage_there_is_no_bound():
    def bare(sent):
        return healthy(sent, prompt_tokens=None, completion_tokens=None, cached_tokens=None)

    outcome, _ = plausible(bare)
    assert outcome.sensitivity is None


def test_streams_in_one_piece_are_told():
    outcome, _ = plausible(lambda sent: healthy(sent, chunk_times_s=(0.1,)))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert "one piece" in outcome.notes[0]


def test_refusals_and_cut_streams_are_no_lies():
    outcome, _ = plausible(lambda _sent: refused("later", status=429))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    cut = plausible(lambda sent: dataclasses.replace(healthy(sent), failure=Failure.CUT))[0]
    assert cut.verdict is Verdict.INCONCLUSIVE
