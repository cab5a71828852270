"""Bodies in a server's dialect, and what its refusals teach."""

import pytest

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.dialect import Dialect, body_of, learn
from kvfence.check.reply import Failure, Reply

CHAT, COMPLETIONS = Endpoint.CHAT, Endpoint.COMPLETIONS


def body(ask=None, endpoint=CHAT, *, dialect=None, extras=None, **asked):
    return body_of(
        ask or Ask(prompt="hi", **asked),
        endpoint,
        model="m",
        dialect=dialect or Dialect(),
        extras=extras or {},
    )


def test_a_chat():
    assert body() == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 16,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_completion():
    found = body(endpoint=COMPLETIONS, is_streaming=False, stop=("x",), n=2, seed=7)
    assert found == {
        "model": "m",
        "prompt": "hi",
        "max_tokens": 16,
        "temperature": 0.0,
        "n": 2,
        "stop": ["x"],
        "seed": 7,
    }
    assert body(Ask(prompt=(5, 6)), COMPLETIONS)["prompt"] == [5, 6]


def test_what_is_not_given_is_not_sent():
    found = body(max_tokens=None, temperature=None)
    assert "max_tokens" not in found
    assert "temperature" not in found
    assert "model" not in body_of(Ask(prompt="hi"), CHAT, model=None, dialect=Dialect(), extras={})


def test_logprobs_are_asked_for_in_each_form():
    assert body(wants_logprobs=True)["logprobs"] is True
    assert body(wants_logprobs=True)["top_logprobs"] == 5
    assert body(wants_logprobs=True, endpoint=COMPLETIONS)["logprobs"] == 5
    bare = body(wants_logprobs=True, dialect=Dialect(left_out=frozenset({"logprobs"})))
    assert "logprobs" not in bare
    assert "top_logprobs" not in bare


def test_a_dialect_is_spoken():
    dialect = Dialect(
        answer_limit="max_completion_tokens", left_out=frozenset({"temperature"}), folds_system=True
    )
    found = body(system="be brief", dialect=dialect)
    assert found["max_completion_tokens"] == 16
    assert "max_tokens" not in found
    assert "temperature" not in found
    assert found["messages"] == [{"role": "user", "content": "be brief\n\nhi"}]
    assert body(endpoint=COMPLETIONS, dialect=dialect)["max_tokens"] == 16, (
        "the old endpoint has the old name"
    )


def test_system_words():
    assert body(system="s")["messages"][0] == {"role": "system", "content": "s"}
    assert body(system="s", endpoint=COMPLETIONS)["prompt"] == "s\n\nhi"


def test_extras_the_asks_own_last():
    found = body(extra_body={"user": "ask", "top_k": 1}, extras={"user": "tenant", "store": False})
    assert (found["user"], found["top_k"], found["store"]) == ("ask", 1, False)


def refusal(message, *, param=None, status=400):
    return Reply(status=status, failure=Failure.REFUSED, message=message, error_param=param)


SENT = {
    "model": "m",
    "messages": [{"role": "system", "content": "s"}],
    "max_tokens": 1,
    "temperature": 0.0,
    "seed": 1,
    "stream_options": {},
    "logprobs": True,
    "top_logprobs": 5,
}


@pytest.mark.parametrize(
    ("message", "param", "left_out"),
    [
        (
            "Unsupported value: 'temperature' does not support 0.0 with this model.",
            "temperature",
            "temperature",
        ),
        ("`temperature` must be strictly positive", None, "temperature"),
        ("seed: Extra inputs are not permitted", "seed", "seed"),
        ("Unrecognized request argument supplied: seed", None, "seed"),
        ("stream_options is not supported", None, "stream_options"),
        ("unknown field `logprobs`", None, "logprobs"),
        ("top_logprobs is not allowed", None, "top_logprobs"),
        ("You are not allowed to request logprobs from this model", "logprobs", "logprobs"),
        ("not this", "stream_options.include_usage", "stream_options"),
    ],
)
def test_a_refused_field_is_left_out(message, param, left_out):
    lesson = learn(Dialect(), refusal(message, param=param), SENT)
    assert lesson.dialect.left_out == {left_out}
    assert lesson.how.startswith(f"without `{left_out}`; the server said: {message[:20]}")


def test_the_two_names_of_the_answers_limit():
    message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    lesson = learn(Dialect(), refusal(message, param="max_tokens"), SENT)
    assert lesson.dialect.answer_limit == "max_completion_tokens"
    back = learn(lesson.dialect, refusal("unknown: max_completion_tokens"), {"max_completion_tokens": 1})
    assert back.dialect.answer_limit == "max_tokens"


def test_a_model_without_a_system_role():
    lesson = learn(Dialect(), refusal("System role not supported"), SENT)
    assert lesson.dialect.folds_system
    assert learn(lesson.dialect, refusal("System role not supported"), SENT) is None, "once is enough"


@pytest.mark.parametrize(
    "reply",
    [
        refusal(
            "'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum context length is 8"
        ),
        refusal("the prompt is unknown to us"),
        refusal("temperature is unsupported", status=404),
        refusal("temperature is unsupported", status=500),
        refusal("unsupported: response_format"),
        refusal(None),
        Reply(status=200),
    ],
)
def test_what_teaches_nothing(reply):
    assert learn(Dialect(), reply, SENT) is None


def test_a_field_that_was_not_sent_is_not_learned():
    assert learn(Dialect(), refusal("seed is not supported"), {"model": "m"}) is None
