"""The fake server speaks OpenAI's protocol, in its dialects, and healthy ones answer rightly under pressure."""

import asyncio

import pytest
from tests.check.fake.setup import Setup
from tests.check.fake.talk import talking
from tests.check.fake.variants import HEALTHY
from tests.check.virtual import run


def talk_with(setup, go):
    async def inside():
        async with talking(setup) as talk:
            return await go(talk)

    return run(inside())


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_server_gives_everybody_their_own_words(name):
    setup = HEALTHY[name]

    async def crowd(talk):
        long = [talk.ask(f"{n} Count from {n} to {n + 300}", str(n), max_tokens=300) for n in range(12)]
        short = [talk.ask("rain " * 40 * n + f"Reply ONLY: word{n}", str(n)) for n in range(24)]
        heard = await asyncio.gather(*long, *short)
        engine = talk.server.engine
        assert engine.foreign_reads == 0
        assert engine.pool.foreign_writes == 0
        assert all(answer.status == 200 for answer in heard)
        wrong = [n for n, answer in enumerate(heard[12:]) if answer.text != f"word{n}"]
        assert not wrong or setup.obedience < 1
        others = {f"word{n}" for n in range(24)}
        for n, answer in enumerate(heard[12:]):
            assert not others - {f"word{n}"} & set(answer.text.split())
        assert not engine.live
        cached = len(engine.prefixes._entries) if engine.prefixes else 0
        assert engine.pool.free + cached == engine.pool.pages
        return engine.preemptions

    preemptions = talk_with(setup, crowd)
    assert bool(preemptions) == setup.preempts


def test_a_stream_counts_at_its_end_and_says_done():
    events = talk_with(
        Setup(), lambda talk: talk.stream("Reply ONLY: one two", stream_options={"include_usage": True})
    )
    assert events[-1] == "[DONE]"
    assert events[-2]["choices"] == []
    assert events[-2]["usage"]["completion_tokens"] == 2
    text = "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-2])
    assert text == "one two"
    assert [event["choices"][0]["finish_reason"] for event in events[:-2]] == [None, None, "stop"]


def test_every_choice_of_n_is_answered():
    async def go(talk):
        whole = await talk.ask("Reply ONLY: one", n=3)
        events = await talk.stream("Reply ONLY: one", n=3)
        return whole.data, events

    data, events = talk_with(Setup(), go)
    assert [choice["message"]["content"] for choice in data["choices"]] == ["one"] * 3
    assert {event["choices"][0]["index"] for event in events[:-1]} == {0, 1, 2}


@pytest.mark.parametrize(
    ("dialect", "words"),
    [("openai", "resulted in"), ("vllm", "input tokens"), ("sglang", "exceeds the maximum allowed length")],
)
def test_what_does_not_fit_is_refused(dialect, words):
    heard = talk_with(Setup(dialect=dialect), lambda talk: talk.ask("rain " * 9_000))
    assert heard.status == 400
    assert words in str(heard.data)
    assert "8192" in str(heard.data)


def test_keys_are_tenants_and_a_wrong_one_is_refused():
    async def go(talk):
        return [(await talk.ask("Reply ONLY: one", key)).status for key in ("a", "b")]

    assert talk_with(Setup(keys={"a": "first"}), go) == [200, 401]


def test_log_probabilities_name_the_word():
    heard = talk_with(Setup(), lambda talk: talk.ask("Reply ONLY: one", logprobs=True, top_logprobs=2))
    (place,) = heard.data["choices"][0]["logprobs"]["content"]
    assert place["token"] == place["top_logprobs"][0]["token"] == "one"
    assert place["logprob"] < 0


@pytest.mark.parametrize("body", [{"stop": ["three"]}, {"stop": "three"}])
def test_a_stop_string_ends_the_answer(body):
    heard = talk_with(Setup(), lambda talk: talk.ask("Reply ONLY: one two three four", **body))
    assert heard.text.strip() == "one two"
    assert heard.finish == "stop"


@pytest.mark.parametrize(
    ("setup", "body", "word"),
    [
        (Setup(takes_temperature=False), {}, "temperature"),
        (Setup(has_logprobs=False), {"logprobs": True}, "logprobs"),
        (Setup(only_max_completion_tokens=True), {}, "max_completion_tokens"),
        (Setup(), {"cache_salt": ""}, "cache_salt"),
        (Setup(), {"kv_transfer_params": {}}, "kv_transfer_params"),
        (Setup(), {"messages": []}, "messages"),
        (Setup(), {"max_tokens": 0}, "max_tokens"),
    ],
)
def test_a_field_that_is_not_taken_is_named(setup, body, word):
    heard = talk_with(setup, lambda talk: talk.ask("Reply ONLY: one", **body))
    assert heard.status == 400
    assert word in str(heard.data)


def test_tokens_are_counted_as_usage_counts_them():
    async def go(talk):
        text = "The river stood near the garden, wasn't it?"
        counted = (await talk.client.post("/tokenize", json={"prompt": text})).json()
        by_text = (await talk.client.post("/completions", json={"prompt": text, "max_tokens": 1})).json()
        by_ids = (
            await talk.client.post("/completions", json={"prompt": counted["tokens"], "max_tokens": 1})
        ).json()
        return counted["count"], by_text["usage"]["prompt_tokens"], by_ids["usage"]["prompt_tokens"]

    counts = talk_with(Setup(), go)
    assert len(set(counts)) == 1


def test_a_repeat_is_cached_and_quicker():
    async def go(talk):
        prompt = "rain " * 3_000
        return [await talk.ask(prompt, max_tokens=1) for _ in range(2)]

    cold, warm = talk_with(Setup(), go)
    assert cold.usage["prompt_tokens_details"]["cached_tokens"] == 0
    assert 2_900 < warm.usage["prompt_tokens_details"]["cached_tokens"] < warm.usage["prompt_tokens"]
    assert warm.seconds < cold.seconds / 2


def test_rounding_changes_free_words_under_load_alone():
    async def go(talk):
        alone = [(await talk.ask("Tell a tale of rain.", max_tokens=60)).text for _ in range(3)]
        crowd = await asyncio.gather(*(talk.ask("Tell a tale of rain.", max_tokens=60) for _ in range(12)))
        return alone, [answer.text for answer in crowd]

    alone, crowd = talk_with(Setup(rounding=0.05), go)
    assert len(set(alone)) == 1
    assert len(set(crowd)) > 1
