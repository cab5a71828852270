"""Members of an answer, in the forms that different servers give them."""

import pytest

from kvfence.check.read_reply_parts import (
    LOGPROB_MIN,
    ErrorSaid,
    error_of,
    finish_of,
    logprobs_of,
    texts_of,
    usage_of,
)
from kvfence.check.reply import Usage


@pytest.mark.parametrize(
    ("choice", "texts"),
    [
        ({"text": "a"}, [("content", "a")]),
        ({"message": {"content": "a"}}, [("content", "a")]),
        ({"delta": {"role": "assistant", "content": ""}}, []),
        ({"delta": {"content": None}}, []),
        (
            {"message": {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}]}},
            [("content", "a"), ("reasoning", "b")],
        ),
        ({"delta": {"reasoning_content": "r"}}, [("reasoning", "r")]),
        ({"delta": {"reasoning": "r"}}, [("reasoning", "r")]),
        ({"message": {"reasoning": {"content": "r"}}}, [("reasoning", "r")]),
        (
            {"message": {"reasoning_details": [{"text": "r"}, {"summary": "s"}]}},
            [("reasoning", "r"), ("reasoning", "s")],
        ),
        ({"message": {"refusal": "no"}}, [("error", "no")]),
        (
            {"message": {"tool_calls": [{"function": {"name": "f", "arguments": '{"x":1}'}}]}},
            [("tool", "f"), ("tool", '{"x":1}')],
        ),
        ({"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"x'}}]}}, [("tool", '"x')]),
        (
            {"message": {"function_call": {"name": "f", "arguments": {"x": 1}}}},
            [("tool", "f"), ("tool", '{"x":1}')],
        ),
        ({"message": "nonsense", "delta": [1], "text": 7}, []),
    ],
)
def test_every_text_of_a_choice_is_read(choice, texts):
    assert list(texts_of(choice)) == texts


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ({"finish_reason": "stop"}, ("stop", None)),
        ({"finish_reason": "content_filter"}, ("content_filter", None)),
        ({"finish_reason": None}, (None, None)),
        ({}, (None, None)),
        ({"finish_reason": {"type": "abort", "message": "too long"}}, ("abort", "too long")),
    ],
)
def test_finish_reasons(choice, found):
    assert finish_of(choice) == found


def test_logprobs_of_chat():
    top = [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -2}]
    said = {
        "content": [{"token": "a", "logprob": -0.1, "top_logprobs": top}, {"token": "c", "logprob": None}]
    }
    tokens, tops = logprobs_of({"logprobs": said})
    assert tokens == ["a", "c"]
    assert tops == [(("a", -0.1), ("b", -2.0)), (("c", LOGPROB_MIN),)]


def test_logprobs_of_completions():
    said = {
        "tokens": ["a", "c", "d"],
        "token_logprobs": [-0.1, -0.2],
        "top_logprobs": [{"a": -0.1, "b": -2}, None],
    }
    tokens, tops = logprobs_of({"logprobs": said})
    assert tokens == ["a", "c", "d"]
    assert tops == [(("a", -0.1), ("b", -2.0)), (("c", -0.2),), (("d", LOGPROB_MIN),)]


def test_logprobs_of_a_prompt_are_texts_too():
    choice = {"prompt_logprobs": [None, {"17": {"decoded_token": " hi", "logprob": -1.0}}]}
    assert logprobs_of(choice) == ([" hi"], [])
    assert logprobs_of({"logprobs": None}) == ([], [])


@pytest.mark.parametrize(
    ("answer", "cached"),
    [
        ({"usage": {"prompt_tokens_details": {"cached_tokens": 3}}}, 3),
        ({"usage": {"prompt_tokens_details": {"cached_tokens": 0}}}, 0),
        ({"usage": {"prompt_tokens_details": None}}, None),
        ({"usage": {"input_tokens_details": {"cached_tokens": 3}}}, 3),
        ({"usage": {"prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 4}}, 3),
        ({"usage": {"cache_read_input_tokens": 3}}, 3),
        ({"usage": {"cached_tokens": 3}}, 3),
        ({"usage": {"num_cached_tokens": 3}}, 3),
        ({"usage": {}, "timings": {"cache_n": 3, "prompt_n": 4}}, 3),
        ({"usage": {"cached_tokens": "three"}}, None),
        ({"usage": {"cached_tokens": -1}}, None),
        ({"usage": {"cached_tokens": True}}, None),
    ],
)
def test_cached_tokens_stand_in_many_places(answer, cached):
    assert usage_of(answer, Usage()).cached_tokens == cached


def test_usage_keeps_what_a_later_chunk_leaves_out():
    first = usage_of({"usage": {"prompt_tokens": 9, "completion_tokens": 1}}, Usage())
    assert usage_of({"usage": None}, first) == first
    assert usage_of({"usage": {"completion_tokens": 5}}, first) == Usage(prompt_tokens=9, completion_tokens=5)
    assert usage_of({"x_groq": {"usage": {"prompt_tokens": 4}}}, Usage()).prompt_tokens == 4
    assert usage_of({"usage": {"input_tokens": 4, "output_tokens": 2}}, Usage()) == Usage(
        prompt_tokens=4, completion_tokens=2
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": {"message": "m", "type": "t", "param": "p", "code": 400}}, ("m", "400", "p")),
        ({"error": {"message": "m", "type": "t", "code": None}}, ("m", "t", None)),
        ({"error": "m"}, ("m", None, None)),
        ({"error": "Validation", "message": "the words", "code": 7}, ("the words", "7", None)),
        (
            {"object": "error", "message": "m", "type": "BadRequestError", "param": None, "code": 400},
            ("m", "400", None),
        ),
        ({"detail": "Not Found"}, ("Not Found", None, None)),
        ({"detail": {"error": {"message": "m"}}}, ("m", None, None)),
        ({"detail": [{"loc": ["body", "seed"], "msg": "extra", "type": "x"}]}, ("seed: extra", "x", "seed")),
        ({"errors": [{"code": 10000, "message": "m"}]}, ("m", "10000", None)),
        ({"message": "no Route matched"}, ("no Route matched", None, None)),
        ({"error": {}}, ("an error without words", None, None)),
    ],
)
def test_errors_in_many_forms(answer, said):
    message, code, param = said
    assert error_of(answer) == ErrorSaid(message=message, code=code, param=param)


@pytest.mark.parametrize("answer", [{}, {"error": None, "choices": []}, {"choices": [], "message": "hi"}])
def test_what_is_no_error(answer):
    assert error_of(answer) is None
