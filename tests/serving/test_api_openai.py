"""The official client against the API over a real connection."""

import openai
import pytest
from tests.serving.api_fakes import MODEL, FakeFrontend, client_of, ends, ids, says, tokenizer

from kvfence.protocol import Decisions
from kvfence.protocol.words import End, EndReason, IntegrityReason, Refusal, RefusalCode
from kvfence.serving.api import ApiSettings
from kvfence.serving.limits import TenantLimits

HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def frontend():
    return FakeFrontend()


@pytest.fixture(scope="module")
def client(frontend):
    with client_of(frontend) as client:
        yield client


@pytest.fixture(autouse=True)
def _fresh(frontend):
    frontend.script = says(" fine.")
    frontend.jobs.clear()
    frontend.streams.clear()


def test_completion(client):
    answer = client.completions.create(model=MODEL, prompt="How are you?", max_tokens=9)
    assert answer.id.startswith("cmpl-")
    assert answer.object == "text_completion"
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == (" fine.", "stop")
    assert answer.usage.prompt_tokens == len(ids("How are you?"))
    assert answer.usage.completion_tokens == 3
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 3


def test_job_carries_what_was_asked(client, frontend):
    client.completions.create(
        model=MODEL,
        prompt=[1, 2, 3],
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        presence_penalty=1,
        frequency_penalty=-1,
        logit_bias={"7": -100},
        extra_body={
            "top_k": 5,
            "min_p": 0.1,
            "repetition_penalty": 1.1,
            "ignore_eos": True,
            "stop_token_ids": [4],
        },
    )
    (job,) = frontend.jobs
    assert (job.tokens, job.max_tokens) == ((1, 2, 3), 9)
    sampling = job.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.5, 0.9, 5, 0.1)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (
        1,
        -1,
        1.1,
    )
    assert (sampling.logit_bias, sampling.stop_token_ids, sampling.ignore_eos) == (((7, -100),), (4,), True)
    assert sampling.logprobs is None


def test_prompts_of_all_four_kinds(client, frontend):
    for prompt, expected in (
        ("a b", [ids("a b")]),
        (["a", "b"], [ids("a"), ids("b")]),
        ([5, 6], [(5, 6)]),
        ([[5], [6, 7]], [(5,), (6, 7)]),
    ):
        frontend.jobs.clear()
        answer = client.completions.create(model=MODEL, prompt=prompt, n=2)
        assert [job.tokens for job in frontend.jobs] == [tokens for tokens in expected for _ in range(2)]
        assert [choice.index for choice in answer.choices] == list(range(2 * len(expected)))
        assert answer.usage.prompt_tokens == sum(map(len, expected))
        assert answer.usage.completion_tokens == 3 * 2 * len(expected)


def test_chat(client, frontend):
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_completion_tokens=9)
    assert answer.id.startswith("chatcmpl-")
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == " fine."
    text = tokenizer()
    written = b"".join(text.spelling(token) for token in frontend.jobs[0].tokens).decode()
    assert written.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
    assert frontend.jobs[0].max_tokens == 9


def test_answer_can_be_sent_back(client):
    answer = client.chat.completions.create(model=MODEL, messages=HELLO)
    again = client.chat.completions.create(
        model=MODEL, messages=[*HELLO, answer.choices[0].message, {"role": "user", "content": "And?"}]
    )
    assert again.choices[0].message.content == " fine."
    as_dict = answer.choices[0].message.model_dump()
    assert client.chat.completions.create(model=MODEL, messages=[*HELLO, as_dict, *HELLO]).choices


def test_stream_of_completion(client):
    chunks = list(client.completions.create(model=MODEL, prompt="x", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == " fine."
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "stop"
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert all(chunk.usage is None for chunk in chunks)


def test_stream_of_chat_with_usage(client, frontend):
    frontend.script = says(" fine.", EndReason.LENGTH, cached_tokens=16)
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    *spoken, last, usage = chunks
    assert "".join(chunk.choices[0].delta.content for chunk in spoken) == " fine."
    assert last.choices[0].finish_reason == "length"
    assert usage.choices == []
    assert usage.usage.prompt_tokens == len(frontend.jobs[0].tokens)
    assert usage.usage.completion_tokens == 2
    assert usage.usage.prompt_tokens_details.cached_tokens == 16


def test_choices_of_a_stream(client, frontend):
    chunks = list(client.chat.completions.create(model=MODEL, messages=HELLO, n=3, stream=True))
    texts = dict.fromkeys(range(3), "")
    for chunk in chunks:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert set(texts.values()) == {" fine."}
    assert sorted(c.choices[0].index for c in chunks if c.choices[0].finish_reason) == [0, 1, 2]
    assert len({job.request_id for job in frontend.jobs}) == 3


def test_stop_string(client, frontend):
    frontend.script = says(" one two three four")
    answer = client.completions.create(model=MODEL, prompt="x", stop=["o thr", "never"])
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == (" one tw", "stop")
    assert frontend.streams[0].cancelled.is_set()
    # What was computed is counted, not what was returned.
    assert answer.usage.completion_tokens == frontend.streams[0].delivered == 3
    chunks = list(client.completions.create(model=MODEL, prompt="x", stop="o thr", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == " one tw"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_seed(client, frontend):
    def seeds(**options):
        frontend.jobs.clear()
        client.completions.create(model=MODEL, **options)
        return [job.sampling.seed for job in frontend.jobs]

    first = seeds(prompt="x", seed=-5, n=3)
    assert first == seeds(prompt="x", seed=-5, n=3)
    assert len(set(first)) == 3
    assert seeds(prompt=["y", "x"], seed=-5) == [first[0]] * 2
    assert seeds(prompt="x") != seeds(prompt="x")


def test_logprobs_of_completion(client):
    answer = client.completions.create(model=MODEL, prompt="x", logprobs=2)
    found = answer.choices[0].logprobs
    assert found.tokens == [" fine", "."]
    assert found.text_offset == [0, 5]
    assert found.token_logprobs == [-0.5, -0.5]
    assert [len(top) for top in found.top_logprobs] == [2, 2]
    assert found.top_logprobs[0][" fine"] == -0.5


def test_logprobs_of_chat(client):
    for stream in (False, True):
        options = {"model": MODEL, "messages": HELLO, "logprobs": True, "top_logprobs": 1}
        if stream:
            chunks = client.chat.completions.create(**options, stream=True)
            entries = [e for c in chunks if c.choices[0].logprobs for e in c.choices[0].logprobs.content]
        else:
            entries = client.chat.completions.create(**options).choices[0].logprobs.content
        assert [entry.token for entry in entries] == [" fine", "."]
        assert [entry.bytes for entry in entries] == [list(b" fine"), list(b".")]
        assert entries[0].top_logprobs[0].logprob == -0.5


def test_character_over_several_tokens(client, frontend):
    text = " 𝕂ü🦙é 漢字"
    frontend.script = says(text)
    chunks = list(client.completions.create(model=MODEL, prompt="x", stream=True, logprobs=0))
    assert "".join(chunk.choices[0].text for chunk in chunks) == text
    assert not any("\ufffd" in chunk.choices[0].text for chunk in chunks)
    tokens = [token for chunk in chunks for token in chunk.choices[0].logprobs.tokens]
    assert len(tokens) == len(ids(text))


def test_models(client, frontend):
    (card,) = client.models.list().data
    assert (card.id, card.max_model_len) == (MODEL, frontend.limit_tokens)
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt/4")
    assert caught.value.code == "model_not_found"


# ---------------------------------------------------------------- ends that are no success
TOO_LONG = Refusal(RefusalCode.CONTEXT_LENGTH, 300, 256)
FAILURES = [
    (End(EndReason.REFUSED, refusal=TOO_LONG), openai.BadRequestError, 400, "context_length_exceeded"),
    (
        End(EndReason.REFUSED, refusal=Refusal(RefusalCode.CONTEXT_LENGTH)),
        openai.BadRequestError,
        400,
        "context_length_exceeded",
    ),
    *[
        (End(EndReason.REFUSED, refusal=Refusal(code)), openai.InternalServerError, 503, code.value)
        for code in RefusalCode
        if code is not RefusalCode.CONTEXT_LENGTH
    ],
    (End(EndReason.REFUSED), openai.InternalServerError, 503, "refused"),
    (
        End(EndReason.INTEGRITY, integrity=IntegrityReason.SEAL_FOREIGN),
        openai.InternalServerError,
        500,
        "integrity",
    ),
    (End(EndReason.PEER_LOST), openai.InternalServerError, 503, "peer_lost"),
    (End(EndReason.TRANSFER), openai.InternalServerError, 502, "transfer"),
    (End(EndReason.DEADLINE), openai.InternalServerError, 503, "deadline"),
    (End(EndReason.CLIENT_GONE), openai.InternalServerError, 503, "client_gone"),
    (End(EndReason.PREEMPTED), openai.InternalServerError, 503, "preempted"),
    (End(EndReason.EXECUTOR), openai.InternalServerError, 500, "executor"),
    (End(EndReason.ILLEGAL), openai.InternalServerError, 500, "illegal"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("end", "kind", "status", "code"), FAILURES)
def test_failure_before_the_first_token_has_its_status(client, frontend, end, kind, status, code, stream):
    frontend.script = ends(end)
    with pytest.raises(kind) as caught:
        client.chat.completions.create(model=MODEL, messages=HELLO, stream=stream, n=2)
    error = caught.value
    assert (error.status_code, error.code) == (status, code)
    assert bool(error.response.headers.get("retry-after")) == (status == 503)


def test_every_end_is_covered():
    covered = {end.reason for end, *_ in FAILURES} | {EndReason.STOP, EndReason.LENGTH}
    assert covered == set(EndReason)


def test_integrity_names_the_layer(client, frontend):
    frontend.script = ends(End(EndReason.INTEGRITY, integrity=IntegrityReason.MANIFEST_TOKENS))
    with pytest.raises(openai.InternalServerError, match="manifest_tokens"):
        client.completions.create(model=MODEL, prompt="x")


def test_context_length_has_both_numbers(client, frontend):
    frontend.script = ends(End(EndReason.REFUSED, refusal=TOO_LONG))
    with pytest.raises(openai.BadRequestError, match=r"256 tokens.*at least 300") as caught:
        client.completions.create(model=MODEL, prompt="x")
    assert (caught.value.body["needed_tokens"], caught.value.body["limit_tokens"]) == (300, 256)


@pytest.mark.parametrize("end", [end for end, *_ in FAILURES if end.reason is not EndReason.REFUSED])
def test_failure_in_a_begun_stream_is_an_error(client, frontend, end):
    frontend.script = ends(end, " fine.")
    seen = []
    with pytest.raises(openai.APIError) as caught:
        seen.extend(client.chat.completions.create(model=MODEL, messages=HELLO, stream=True))
    assert "".join(chunk.choices[0].delta.content for chunk in seen) == " fine."
    assert not any(chunk.choices[0].finish_reason for chunk in seen)
    assert caught.value.code == end.reason.value
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model=MODEL, messages=HELLO)


def test_integrity_after_a_stop_string_is_no_stop(client, frontend):
    frontend.script = ends(End(EndReason.INTEGRITY, integrity=IntegrityReason.GUARD_SEAL), " one")
    with pytest.raises(openai.InternalServerError, match="guard_seal"):
        client.completions.create(model=MODEL, prompt="x", stop="ne")


def test_one_failed_choice_ends_all(client, frontend):
    refused = ends(End(EndReason.REFUSED, refusal=Refusal(RefusalCode.BUSY)))
    frontend.script = lambda job: refused(job) if job.request_id.endswith("-1") else says(" fine.")(job)[:-1]
    with pytest.raises(openai.InternalServerError) as caught:
        client.completions.create(model=MODEL, prompt="x", n=3)
    assert caught.value.code == "busy"
    assert all(stream.cancelled.is_set() for stream in frontend.streams if stream.delivered)


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("max_tokens", [None, 1, 56])
@pytest.mark.parametrize("stream", [False, True])
def test_capacity_at_the_edge(client, frontend, over, max_tokens, stream):
    limit = frontend.limit_tokens
    prompt = [5] * (limit + over - (max_tokens or 1))
    options = {"model": MODEL, "prompt": prompt, "stream": stream}
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    if over <= 0:
        assert client.completions.create(**options)
        return
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(**options)
    assert caught.value.code == "context_length_exceeded"
    assert (caught.value.body["needed_tokens"], caught.value.body["limit_tokens"]) == (limit + 1, limit)
    assert str(limit) in caught.value.message
    assert str(limit + 1) in caught.value.message
    assert frontend.jobs == []


class EverythingFits(Decisions):
    """Nothing is too long at the edge."""

    def admits(self, needed_tokens, limit_tokens):
        return True


def test_edge_check_can_be_left_to_the_router():
    frontend = FakeFrontend(script=ends(End(EndReason.REFUSED, refusal=TOO_LONG)))
    with (
        client_of(frontend, decisions=EverythingFits()) as client,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        client.completions.create(model=MODEL, prompt=[5] * 300)
    assert caught.value.code == "context_length_exceeded"
    assert len(frontend.jobs) == 1


def test_errors_of_callers_are_exception_types(client):
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="other", prompt="x")
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=MODEL, prompt="x", temperature=3)
    assert caught.value.param == "temperature"
    settings = ApiSettings(model_id=MODEL, limits=TenantLimits(requests_max=1, tokens_max=0))
    with client_of(FakeFrontend(), settings=settings) as limited, pytest.raises(openai.BadRequestError):
        limited.completions.create(model=MODEL, prompt="x")


def test_tenant_with_too_much_in_flight_is_told_when_to_try_again():
    frontend = FakeFrontend(script=lambda job: says(" fine.")(job)[:-1])
    settings = ApiSettings(model_id=MODEL, limits=TenantLimits(requests_max=1))
    with client_of(frontend, settings=settings) as client:
        with client.completions.create(model=MODEL, prompt="x", stream=True):
            with pytest.raises(openai.RateLimitError) as caught:
                client.completions.create(model=MODEL, prompt="x")
            assert caught.value.response.headers["retry-after"] == "1"
            other = client.with_options(api_key="another")
            frontend.script = says(" fine.")
            assert other.completions.create(model=MODEL, prompt="x").choices
        assert frontend.streams[0].cancelled.wait(10)
