"""Events come out the same, however the network cuts the bytes."""

import pytest

from kvfence.check import sse
from kvfence.check.sse import EventReader, EventTooLongError, ServerEvent


def read(*chunks: bytes) -> list[ServerEvent]:
    reader = EventReader()
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    return found + list(reader.close())


STREAM = (
    '\ufeffdata: {"a": 1}\r\n\r\n: a comment\r\n\r\nevent: error\r\ndata:two\r\ndata: lines\r\n\r\n'
    "id: 7\nretry: 5\ndata: ü€😀\n\ndata: [DONE]\r\r"
).encode()
EVENTS = [
    ServerEvent('{"a": 1}'),
    ServerEvent("two\nlines", "error"),
    ServerEvent("ü€😀"),
    ServerEvent("[DONE]"),
]


def test_a_whole_stream():
    assert read(STREAM) == EVENTS


def test_cut_anywhere():
    for at in range(1, len(STREAM)):
        assert read(STREAM[:at], STREAM[at:]) == EVENTS, at
    assert read(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == EVENTS


def test_an_event_is_there_as_soon_as_its_blank_line_is():
    reader = EventReader()
    assert list(reader.feed(b"data: a\n")) == []
    assert list(reader.feed(b"\n")) == [ServerEvent("a")]


def test_a_stream_that_ends_without_a_blank_line():
    assert read(b"data: a\n\ndata: [DONE]") == [ServerEvent("a"), ServerEvent("[DONE]")]


def test_what_says_nothing_is_no_event():
    assert read(b"\n\n: ping\n\nevent: x\n\nid: 1\n\ncomplete: nonsense\n\n") == []
    assert read() == []
    assert read(b"data\n\n") == [ServerEvent("")]


def test_bad_utf8_hides_nothing_that_follows():
    assert read(b"data: a\xffb\n\ndata: c\n\n") == [ServerEvent("a\ufffdb"), ServerEvent("c")]
    assert read(b"data: \xe2\x82") == [ServerEvent("\ufffd")]


def test_a_line_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(sse, "LINE_CHARS_MAX", 100)
    reader = EventReader()
    assert list(reader.feed(b"data: " + b"x" * 94)) == []
    with pytest.raises(EventTooLongError, match="a line"):
        list(reader.feed(b"y"))


def test_an_event_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(sse, "EVENT_CHARS_MAX", 100)
    with pytest.raises(EventTooLongError, match="an event"):
        read(*(b"data: 0123456789\n" for _ in range(20)))
    assert read(b"data: 0123456789\n" * 9) != []
