"""Another beginning: pages that are keyed without it show, counts that mean nothing do not."""

import random

from tests.check.scripted_bench import ScriptedBench, answered, count_words
from tests.check.virtual import run

from kvfence.check.scenarios.identity_chain import (
    MIDDLE_TOKENS,
    ROUNDS,
    chain_cost,
    middle_of,
    play_chain,
    two_beginnings,
)


def chained(keys, **counts):
    """What a cache comes to that knows a prompt by any of these keys."""
    pages = set()

    def script(sent):
        is_hit = bool(pages & set(keys(sent.text)))
        pages.update(keys(sent.text))
        counted = {"prompt_tokens": sent.tokens, "cached_tokens": sent.tokens - 4 if is_hit else 16}
        return answered("x", **(counted | counts))

    bench = ScriptedBench(script)
    return run(play_chain(bench)), bench


def test_a_key_of_the_end_alone_shows():
    found, bench = chained(lambda text: [text[-400:]])
    assert (found.rounds, found.hits, found.fresh) == (ROUNDS, ROUNDS, 0)
    assert bench.used.requests <= chain_cost(1).requests
    assert bench.used.prompt_tokens <= chain_cost(1).prompt_tokens


def test_a_key_without_the_middle_shows():
    found, _ = chained(lambda text: [text[:100] + text[-400:]])
    assert found.hits == ROUNDS


def test_a_key_of_everything_hits_its_own_repeat_alone():
    found, _ = chained(lambda text: [text])
    assert (found.hits, found.repeats, found.fresh) == (0, ROUNDS, 0)


def test_counts_that_always_say_cached_or_nothing():
    assert chained(lambda _text: [1], cached_tokens=600)[0].fresh == ROUNDS
    assert chained(lambda text: [text], cached_tokens=None)[0].rounds == 0


def test_two_beginnings_are_the_same_sentences_in_another_order():
    one, other = two_beginnings(random.Random(1))
    assert one != other
    assert sorted(one.split()) == sorted(other.split())
    assert one[:20] != other[:20]
    assert one[-300:] == other[-300:]


def test_a_middle_is_a_whole_number_of_pages_as_the_server_counts():
    middle = middle_of(random.Random(1), lambda text: round(1.1 * count_words(text)))
    long, cut = middle.prompts(random.Random(2))
    assert count_words(long) - count_words(cut) != MIDDLE_TOKENS
    middle.learn(*(answered("x", prompt_tokens=20 + count_words(text)) for text in (long, cut)))
    long, cut = middle.prompts(random.Random(3))
    assert count_words(long) - count_words(cut) == MIDDLE_TOKENS
    assert (long[:80], long[-300:]) == (cut[:80], cut[-300:])
    assert long[-900:] == cut[-900:], "the words before the end are the same, too"
