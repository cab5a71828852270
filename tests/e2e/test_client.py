"""The official `openai` client against a real deployment: what users do, and what they do wrong."""

import concurrent.futures

import openai
import pytest

pytestmark = pytest.mark.e2e

MODEL = "smollm2-135m-instruct"
LIMIT = 512
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def deployment(launch):
    with launch("--context", str(LIMIT), "--pool-tokens", str(2 * LIMIT)) as deployment:
        yield deployment


def client_of(deployment, key="tenant-a"):
    return openai.OpenAI(base_url=f"{deployment.url}/v1", api_key=key, max_retries=0, timeout=120)


@pytest.fixture
def client(deployment):
    with client_of(deployment) as client:
        yield client


def test_chat_answers_sensibly(client):
    reply = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=32)
    assert "Paris" in reply.choices[0].message.content
    assert reply.choices[0].finish_reason == "stop"
    usage = reply.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens < 32


def test_a_stream_says_the_same_as_the_whole_answer(client):
    whole = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=32)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=QUESTION,
        temperature=0,
        max_tokens=32,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    ends = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert [end for end in ends if end] == ["stop"]
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_completions_with_stop_and_length(client):
    def ask(**more):
        return client.completions.create(
            model=MODEL, prompt="Count: one, two, three,", temperature=0, max_tokens=12, **more
        ).choices[0]

    whole = ask()
    assert whole.finish_reason == "length"
    word = whole.text.split()[2]
    stopped = ask(stop=[word])
    assert stopped.finish_reason == "stop"
    assert stopped.text == whole.text[: whole.text.index(word)]


def test_choices_differ_and_a_seed_repeats_them(client):
    def ask(seed):
        reply = client.completions.create(
            model=MODEL, prompt="My favourite animal is", n=3, seed=seed, temperature=1.0, max_tokens=12
        )
        assert [choice.index for choice in reply.choices] == [0, 1, 2]
        return [choice.text for choice in reply.choices]

    first = ask(7)
    assert len(set(first)) > 1
    assert ask(7) == first
    assert ask(8) != first


def test_logprobs(client):
    chat = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, max_tokens=4, logprobs=True, top_logprobs=3
    )
    content = chat.choices[0].logprobs.content
    assert len(content) == 4
    for token in content:
        assert token.logprob <= 0
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].token == token.token  # greedy takes the likeliest
    text = client.completions.create(model=MODEL, prompt="Hello", temperature=0, max_tokens=4, logprobs=2)
    found = text.choices[0].logprobs
    assert len(found.tokens) == len(found.token_logprobs) == len(found.top_logprobs) == 4
    assert "".join(found.tokens) == text.choices[0].text


def test_models_advertises_the_true_limit(client):
    (model,) = client.models.list().data
    assert (model.id, model.max_model_len) == (MODEL, LIMIT)
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("another")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("prompt_tokens", "max_tokens", "fits"),
    [
        (LIMIT - 2, None, True),
        (LIMIT - 1, None, True),
        (LIMIT, None, False),
        (LIMIT + 1, None, False),
        (LIMIT - 9, 8, True),
        (LIMIT - 8, 8, True),
        (LIMIT - 7, 8, False),
        (LIMIT, 1, False),
        (100 * LIMIT, 1, False),
    ],
)
def test_requests_around_the_limit(client, prompt_tokens, max_tokens, fits, stream):
    more = {} if max_tokens is None else {"max_tokens": max_tokens}

    def ask():
        return client.completions.create(
            model=MODEL,
            prompt=[100] * prompt_tokens,
            temperature=0,
            stream=stream,
            extra_body={"ignore_eos": True},
            **more,
        )

    if fits:
        reply = ask()
        ends = [part.choices[0].finish_reason for part in (reply if stream else [reply]) if part.choices]
        assert ends[-1] == "length"
        return
    with pytest.raises(openai.BadRequestError) as refused:
        ask()
    assert refused.value.code == "context_length_exceeded"
    assert str(LIMIT) in refused.value.message.replace(",", "")
    assert str(prompt_tokens + (max_tokens or 1)) in refused.value.message.replace(",", "")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"bootstrap_room": 1}, "bootstrap_room"),
        ({"kv_transfer_params": {}}, "kv_transfer_params"),
        ({"lease": 3}, "lease"),
        ({"pages": [1]}, "pages"),
        ({"temprature": 1}, "temprature"),
        ({"n": -1}, "n"),
        ({"max_tokens": 10**30}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"tools": [{"type": "function"}]}, "tools"),
    ],
)
def test_what_is_wrong_is_named(deployment, body, names):
    status, reply = deployment.post("/v1/completions", {"model": MODEL, "prompt": "a", **body})
    assert status == 400
    assert reply["error"]["param"] == names


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"model": "\xff"}', b"null", b'"x"', b'{"a":' * 5000])
def test_what_is_no_json_object_is_refused(deployment, raw):
    status, reply = deployment.post("/v1/chat/completions", raw)
    assert status == 400
    assert reply["error"]["message"]


def test_an_unknown_model_is_404(client):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt-4", messages=QUESTION)


def test_a_client_s_request_id_is_echoed_and_never_a_key(deployment):
    def ask(number):
        with client_of(deployment, key=f"tenant-{number % 2}") as client:
            raw = client.completions.with_raw_response.create(
                model=MODEL,
                prompt=f"{number % 2} " * 40,
                temperature=0,
                max_tokens=24,
                extra_headers={"X-Request-Id": "the-same-for-all"},
            )
            assert raw.headers["x-request-id"] == "the-same-for-all"
            reply = raw.parse()
            return reply.id, reply.choices[0].text

    alone = [ask(0)[1], ask(1)[1]]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert len({reply_id for reply_id, _ in answers}) == 8
    for number, (_, text) in enumerate(answers):
        assert text[:20] == alone[number % 2][:20]
        assert text[:20] != alone[1 - number % 2][:20]


def test_prefix_pages_are_shared_within_a_tenant_only(deployment):
    def cached(key):
        with client_of(deployment, key) as client:
            reply = client.completions.create(
                model=MODEL, prompt="A long story about a small house. " * 12, temperature=0, max_tokens=1
            )
            return reply.usage.prompt_tokens_details.cached_tokens

    assert cached("prefix-a") == 0
    assert cached("prefix-a") > 0
    assert cached("prefix-b") == 0
