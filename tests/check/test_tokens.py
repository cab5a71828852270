"""Counters are measured on the server, say how and how well, and text comes in the length that was wanted."""

import json
import random
from itertools import pairwise

import httpx
import pytest
from tests.check.scripted_http import client_of
from tests.check.to_fake import fake_client
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.tokens import calibrated, ids_of, learn_counter, words_of
from kvfence.check.tokens_words import MORE_WORDS, WORDS

RNG_SEED = 7


def rng():
    return random.Random(RNG_SEED)


def measuring(size):
    async def measure(text):
        return size(text)

    return measure


def words_in(text):
    return len(text.split())


def counter_of(size, **settings):
    return run(calibrated(measuring(size), rng(), how="usage", **settings))


def test_words_of_a_wanted_number():
    text = words_of(5_000, rng())
    words = text.split(" ")
    assert len(words) == 5_000
    assert set(words) <= set(WORDS)
    assert all(one != other for one, other in pairwise(words))
    runs = [tuple(words[at : at + 5]) for at in range(len(words) - 5)]
    assert len(set(runs)) == len(runs), "no long repeats"
    assert words_of(0, rng()) == ""
    assert words_of(5_000, rng()) == text, "a seed replays it"


def test_ids_of_a_wanted_number():
    ids = ids_of(1_000, rng())
    assert len(ids) == 1_000
    assert all(1_000 <= token < 20_000 for token in ids)


def test_a_tokenizer_that_has_all_the_words_is_met_exactly():
    counter = counter_of(lambda text: words_in(text) + 11)
    assert (counter.how, counter.error) == ("usage", 0.0)
    assert counter.count("") == 11
    assert counter.count(words_of(100_000, rng())) == 100_011


def test_a_tokenizer_that_breaks_words_is_met_on_average():
    counter = counter_of(lambda text: sum(1 + len(word) // 5 for word in text.split()) + 3)
    text = words_of(10_000, rng())
    told = sum(1 + len(word) // 5 for word in text.split()) + 3
    assert abs(counter.count(text) - told) / told < 0.02
    assert 0 <= counter.error < 0.05


def test_the_words_of_both_lists_are_weighed_apart():
    more = set(MORE_WORDS)
    counter = counter_of(lambda text: sum(3 if word in more else 1 for word in text.split()))
    assert counter.count("animal answer") == 2
    assert counter.count("the of") == 6


def test_a_small_context_is_measured_with_fewer_words():
    counter = counter_of(lambda text: words_in(text) + 5 if words_in(text) < 200 else None)
    assert counter.error == 0.0
    assert counter.count("animal") == 6


@pytest.mark.parametrize("size", [lambda _text: None, lambda _text: 7])
def test_what_tells_nothing_is_no_measure(size):
    assert counter_of(size) is None


@pytest.mark.parametrize("factor", [0.25, 0.5, 2, 4])
def test_counts_that_no_tokenizer_gives_are_no_measure(factor):
    assert counter_of(lambda text: round(factor * words_in(text)) + 11) is None


def test_usage_that_contradicts_the_tokenizer_is_left_aside():
    counter = run(calibrated(measuring(words_in), rng(), how="tokenize", around=measuring(lambda _text: 1)))
    assert (counter.how, counter.error, counter.count(" ".join(WORDS[:3]))) == ("tokenize", 0.0, 3)


def test_bare_counts_get_their_template_from_whole_requests():
    counter = counter_of(words_in, around=measuring(lambda text: words_in(text) + 20))
    assert counter.count("animal answer") == 22
    alone = counter_of(words_in, around=measuring(lambda _text: None))
    assert alone.count("animal answer") == 2


@pytest.mark.parametrize(
    ("setup", "how"),
    [
        ({}, "tokenize"),
        ({"has_tokenize": False}, "usage"),
        ({"has_tokenize": False, "has_usage": False}, "bytes"),
    ],
)
def test_the_best_that_a_server_has(setup, how):
    async def go():
        client, _ = fake_client(**setup)
        counter = await learn_counter(client, "a", rng())
        await client.aclose()
        return counter

    counter = run(go())
    assert counter.how == how
    assert counter.error == (0.2 if how == "bytes" else 0.0)


def test_the_count_is_that_of_a_request():
    async def go():
        client, _ = fake_client()
        counter = await learn_counter(client, "a", rng())
        text = words_of(700, rng())
        reply = await client.ask("a", Ask(prompt=text, max_tokens=1))
        return counter.count(text), reply.usage.prompt_tokens

    count, told = run(go())
    assert count == told


def test_llama_cpps_form_of_tokenize():
    def handler(request):
        body = json.loads(request.content)
        if request.url.path == "/tokenize":
            return httpx.Response(200, json={"tokens": list(range(len(body.get("content", "").split())))})
        count = len(body["messages"][0]["content"].split()) + 9
        answer = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": count}}
        return httpx.Response(200, json=answer)

    async def go():
        client, network = client_of(handler)
        return await learn_counter(client, "a", rng()), network

    counter, network = run(go())
    assert counter.how == "tokenize"
    assert counter.count("animal answer") == 11
    assert {request.url.path for request in network.requests} == {"/tokenize", "/v1/chat/completions"}
