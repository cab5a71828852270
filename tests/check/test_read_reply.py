"""Answers whole and in streams, good and bad: each becomes the Reply that says so."""

import json

import pytest

from kvfence.check import sse
from kvfence.check.read_reply import AnswerReader, Reading, Trouble
from kvfence.check.reply import Failure, Text, Usage

JSON = (("content-type", "application/json; charset=utf-8"),)
STREAM = (("Content-Type", "text/event-stream"),)
HTML = (("content-type", "text/html"),)


def read(*parts, status=200, headers=JSON, ends=True, trouble=None, **reading):
    """Feed parts, one a second; each is bytes, text or an object."""
    reader = AnswerReader(status, headers, Reading(**reading))
    at_s = 0.0
    for at_s, part in enumerate(parts, start=1):
        data = (
            part
            if isinstance(part, bytes)
            else (part if isinstance(part, str) else json.dumps(part)).encode()
        )
        reader.feed(data, float(at_s))
    if ends:
        reader.end(float(at_s))
    return reader.reply(total_s=float(at_s), bytes_read=7, trouble=trouble)


def event(answer) -> str:
    return f"data: {answer if isinstance(answer, str) else json.dumps(answer)}\n\n"


def delta(text="", *, finish=None, index=0, **more):
    choice = {"index": index, "delta": {"content": text, **more}, "finish_reason": finish}
    return event({"model": "m", "choices": [choice]})


def stream(*parts, **settings):
    return read(*parts, headers=STREAM, **settings)


DONE = event("[DONE]")
HELLO = (delta(role="assistant"), delta("Hel"), delta("lo"), delta(finish="stop"))


def test_a_whole_answer():
    answer = {
        "model": "m",
        "choices": [
            {"index": 1, "message": {"content": "two"}, "finish_reason": "length"},
            {"index": 0, "message": {"content": "one", "reasoning_content": "why"}, "finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    }
    reply = read(answer)
    assert reply.is_answer
    assert (reply.content, reply.finish, reply.model) == ("one", "stop", "m")
    assert reply.finish_reasons == ("stop", "length")
    assert reply.usage == Usage(prompt_tokens=5, completion_tokens=2, cached_tokens=1)
    assert set(reply.texts) == {
        Text("content", "one"),
        Text("content", "two", 1),
        Text("reasoning", "why"),
        Text("header", "content-type: application/json; charset=utf-8"),
    }
    assert reply.ttft_s is None, "a whole answer does not say when its first token was there"
    assert reply.bytes_read == 7


def test_what_another_node_is_to_be_given():
    named = {"do_remote_prefill": True, "remote_block_ids": [4, 5]}
    answer = {"choices": [{"message": {"content": "a"}}]}
    assert read(answer | {"kv_transfer_params": named}).handoff == named
    assert read(answer).handoff is None
    assert read(answer | {"kv_transfer_params": None}).handoff is None


def test_a_stream_with_a_usage_chunk_that_has_no_choices():
    usage = {"model": "m", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    reply = stream(*HELLO, event(usage), DONE)
    assert reply.is_answer
    assert (reply.content, reply.finish) == ("Hello", "stop")
    assert reply.usage.prompt_tokens == 5
    assert reply.chunk_times_s == (2.0, 3.0), "an opening without text is no chunk"
    assert (reply.ttft_s, reply.total_s) == (2.0, 6.0)


def test_a_marker_split_over_chunks_is_one_text():
    reply = stream(delta(reasoning="saf"), delta(reasoning="fron"), DONE)
    assert Text("reasoning", "saffron") in reply.texts


def test_a_stream_that_was_asked_for_and_a_whole_answer_that_came():
    assert read({"choices": [{"message": {"content": "x"}}]}).content == "x"


def test_usage_may_be_missing():
    assert stream(*HELLO, DONE).usage == Usage()


def test_a_content_filter_is_an_answer():
    reply = stream(delta("Hel"), delta(finish="content_filter"), DONE)
    assert reply.is_answer
    assert reply.finish == "content_filter"


def test_an_error_inside_a_stream_of_status_200():
    error = {"error": {"message": "Internal server error", "type": "InternalServerError", "code": 500}}
    reply = stream(delta("Hel"), event(error), DONE)
    assert (reply.status, reply.failure, reply.error_code) == (200, Failure.ERROR_EVENT, "500")
    assert reply.message == "Internal server error"
    assert reply.content == "Hel"
    assert any(text.place == "error" and "Internal" in text.text for text in reply.texts)


@pytest.mark.parametrize("data", ['{"message": "broke", "choices": []}', "it broke"])
def test_an_event_of_the_kind_error(data):
    reply = stream(delta("Hel"), f"event: error\ndata: {data}\n\n", DONE)
    assert reply.failure is Failure.ERROR_EVENT
    assert reply.message == data


@pytest.mark.parametrize("reason", ["abort", {"type": "abort", "message": "Input is too long"}])
def test_an_abort_is_no_cheerful_end(reason):
    reply = stream(delta("Hel", finish=reason), DONE)
    assert reply.failure is Failure.ERROR_EVENT
    assert reply.finish == "abort"


def test_an_error_in_a_whole_answer_of_status_200():
    assert read({"error": "overloaded"}).failure is Failure.ERROR_EVENT


def test_a_stream_without_its_end_mark_is_cut():
    reply = stream(*HELLO)
    assert (reply.failure, reply.message) == (Failure.CUT, "the stream ended without [DONE]")
    assert stream(*HELLO, expects_done=False).is_answer, "a server that never sends one"
    assert stream().failure is Failure.CUT


@pytest.mark.parametrize("failure", [Failure.CUT, Failure.TIMEOUT, Failure.HUNG_UP])
def test_what_came_before_an_interruption_is_kept(failure):
    trouble = Trouble(failure, "why")
    reply = stream(delta("Hel"), "data: {", ends=False, trouble=trouble)
    assert (reply.failure, reply.message, reply.content) == (failure, "why", "Hel")
    half = read('{"choices": [{"message": {"content": "saffron', ends=False, trouble=trouble)
    assert half.failure is failure
    assert any("saffron" in text.text for text in half.texts)


@pytest.mark.parametrize("settings", [{"headers": JSON}, {"headers": ()}])
@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ('{"choices": [', Failure.NOT_JSON),
        ("", Failure.NOT_JSON),
        ("[1]", Failure.NOT_JSON),
        ("[" * 100_000, Failure.NOT_JSON),
        ('{"object": "list"}', Failure.UNKNOWN_FORM),
    ],
)
def test_bodies_that_are_no_answers(body, failure, settings):
    assert read(body, **settings).failure is failure


def test_an_html_page_is_named_by_its_title():
    page = "<!DOCTYPE html><html><title> 502\n Bad Gateway </title><p>saffron"
    reply = read(page, headers=HTML)
    assert (reply.failure, reply.message) == (Failure.NOT_JSON, "an HTML page: 502 Bad Gateway")
    assert any("saffron" in text.text for text in reply.texts)
    assert read(page, headers=HTML, status=502).failure is Failure.SERVER
    assert read("<html>", headers=(), status=500).message == "an HTML page: without a title"


def test_a_wrong_content_type():
    reply = read({"choices": [{"text": "x"}]}, headers=(("content-type", "text/plain"),))
    assert reply.failure is Failure.NOT_JSON
    assert "content type text/plain" in reply.message
    assert reply.content == "x", "what it says is searched all the same"


def test_broken_json_inside_a_stream():
    reply = stream(delta("Hel"), event('{"choices": [saffron'), delta("lo"), DONE)
    assert (reply.failure, reply.content) == (Failure.NOT_JSON, "Hello")
    assert any("saffron" in text.text for text in reply.texts)


def test_a_stream_of_something_else():
    assert stream(event({"hello": 1}), DONE).failure is Failure.UNKNOWN_FORM


def test_bad_utf8():
    assert read(b'{"choices": [{"text": "a\xff"}]}').content == "a\ufffd"


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (400, Failure.REFUSED),
        (401, Failure.REFUSED),
        (413, Failure.REFUSED),
        (429, Failure.BUSY),
        (503, Failure.BUSY),
        (500, Failure.SERVER),
        (301, Failure.REDIRECTED),
    ],
)
def test_statuses(status, failure):
    body = {"error": {"message": "why", "param": "seed", "code": "c"}}
    reply = read(body, status=status)
    assert (reply.status, reply.failure, reply.message) == (status, failure, "why")
    assert (reply.error_param, reply.error_code) == ("seed", "c")
    assert any(text.place == "error" and "why" in text.text for text in reply.texts)


def test_an_error_in_plain_text_is_quoted():
    reply = read("Request Entity\nToo Large", status=413, headers=(("content-type", "text/plain"),))
    assert (reply.failure, reply.message) == (Failure.REFUSED, "Request Entity Too Large")
    assert read("", status=500).message is None


def test_a_redirect_says_where_to():
    reply = read("", status=307, headers=(("location", "https://elsewhere/v1?key=abc"),))
    assert reply.message == "a redirect to https://elsewhere/v1, which is not followed"


def test_another_model():
    reply = stream(*HELLO, DONE, is_model=lambda name: name == "other")
    assert (reply.failure, reply.model) == (Failure.OTHER_MODEL, "m")
    assert stream(*HELLO, DONE, is_model=lambda name: name == "m").is_answer


def test_an_error_counts_more_than_another_model_and_that_more_than_an_interruption():
    def strange(_name):
        return False

    cut = Trouble(Failure.CUT)
    assert stream(delta("x"), event({"error": "e"}), is_model=strange).failure is Failure.ERROR_EVENT
    assert stream(delta("x"), ends=False, trouble=cut, is_model=strange).failure is Failure.OTHER_MODEL


def test_an_endless_line_is_given_up(monkeypatch):
    monkeypatch.setattr(sse, "LINE_CHARS_MAX", 1_000)
    reply = stream(delta("Hel"), "data: " + "x" * 2_000, "more", DONE)
    assert (reply.failure, reply.content) == (Failure.TOO_LARGE, "Hel")


def test_a_choice_with_a_number_that_cannot_be():
    reply = read(
        {"choices": [{"index": 10**9, "text": "x"}, {"index": -3, "text": "y"}, {"index": "z", "text": "z"}]}
    )
    assert [text.text for text in reply.texts if text.place == "content"] == ["x", "y", "z"]


def test_messages_are_short():
    assert len(read({"error": "x" * 10_000}).message) == 2_000
