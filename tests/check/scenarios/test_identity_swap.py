"""identity-swap: pages of one model given to another show in cached tokens; aliases and empty caches do not."""

import dataclasses

from tests.check.scripted_bench import ScriptedBench, answered, plain_known, play

from kvfence.check.reply import Failure
from kvfence.check.scenarios.identity_swap import SCENARIO
from kvfence.report import Verdict


class Cache:
    """A prefix cache; `key` makes a key of (model, prompt), `names` who is asked when."""

    def __init__(self, key=lambda model, text: (model, text), *, caches=True, is_alias=False):
        self.key, self.caches, self.is_alias, self.pages = key, caches, is_alias, set()

    def __call__(self, sent):
        model = sent.ask.extra_body.get("model", "base")
        key = self.key(model, sent.text)
        is_hit = self.caches and key in self.pages
        self.pages.add(key)
        reply = answered(
            "one text" if self.is_alias else f"{model} says",
            prompt_tokens=sent.tokens,
            cached_tokens=sent.tokens - 4 if is_hit else 0,
        )
        # The client sees another name than the target's, and says so.
        return reply if model == "base" else dataclasses.replace(reply, failure=Failure.OTHER_MODEL)


def swap(script, models=("base", "adapter"), **known):
    bench = ScriptedBench(script, known=plain_known(model="base", models=models, **known))
    return play(SCENARIO, bench), bench


def test_a_key_without_the_model_is_exposed():
    outcome, _ = swap(Cache(lambda _model, text: text))
    assert outcome.verdict is Verdict.EXPOSED
    assert outcome.sightings[0].code == "KVF207"
    assert outcome.sightings[0].evidence["swap_hits"] == 4


def test_a_healthy_server():
    outcome, bench = swap(Cache())
    assert outcome.verdict is Verdict.NO_EVIDENCE, outcome.why
    assert (outcome.opportunities, outcome.sensitivity) == (4, 1.0)
    assert "images" in outcome.notes[0]
    assert bench.most_at_once == 1


def test_two_names_of_one_model_say_nothing():
    outcome, _ = swap(Cache(lambda _model, text: text, is_alias=True))
    assert outcome.verdict is Verdict.INCONCLUSIVE


def test_a_cache_that_never_hits_or_always_does():
    assert swap(Cache(caches=False))[0].verdict is Verdict.INCONCLUSIVE
    assert swap(Cache(lambda _model, _text: 1))[0].verdict is Verdict.INCONCLUSIVE


def test_one_model_is_tested_by_beginnings_alone():
    outcome, bench = swap(Cache(), models=("base",))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert len(bench.asked) == 20
    assert "one model" in outcome.notes[0]
    assert swap(Cache(caches=False), models=("base",))[0].verdict is Verdict.INCONCLUSIVE


def test_no_model_of_a_gateways_list_is_asked():
    many = ("base", *(f"other-{number}" for number in range(16)))
    outcome, bench = swap(Cache(lambda _model, text: text), models=many)
    assert all("model" not in sent.ask.extra_body for sent in bench.asked)
    assert "17 models" in outcome.notes[0]


def test_rounding_does_not_make_two_names_two_models():
    cache = Cache(lambda _model, text: text, is_alias=True)

    def script(sent):
        reply = cache(sent)
        rounded = dataclasses.replace(reply, texts=answered(f"{sent.number}").texts)
        return reply if sent.number <= 24 else rounded  # the beginnings, and the first round of four

    assert swap(script)[0].verdict is Verdict.INCONCLUSIVE


def test_a_key_without_what_stands_before_a_page_is_exposed():
    outcome, _ = swap(Cache(lambda model, text: (model, text[-400:])), models=("base",))
    assert outcome.verdict is Verdict.EXPOSED
    assert outcome.sightings[0].subject_key == "chain"


def test_without_counts():
    outcome, _ = swap(lambda sent: answered("x", prompt_tokens=sent.tokens))
    assert outcome.verdict is Verdict.INCONCLUSIVE
