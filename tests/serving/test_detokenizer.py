"""Text from tokens: whole characters, stop strings, offsets."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving.api_fakes import ids, tokenizer

from kvfence.engine.sampling import TokenLogprobs
from kvfence.serving.detokenizer import Detokenizer, StopFinder

EOS = 2


def spoken(tokens, stops=()):
    """Texts sent, reported tokens, and whether a stop string ended it."""
    detokenizer = Detokenizer(tokenizer(), stops)
    pieces = []
    for token in tokens:
        pieces.append(detokenizer.feed(token))
        if detokenizer.stopped:
            return pieces
    return [*pieces, detokenizer.finish()]


def text_of(pieces):
    return "".join(piece.text for piece in pieces)


@pytest.mark.parametrize("text", [" Hello, world", "é", "漢字かな", "🦙🏳️‍🌈", "a\nb\t c", "�", "x � y"])
def test_text_comes_back(text):
    pieces = spoken(ids(text))
    assert text_of(pieces) == text
    assert len([token for piece in pieces for token in piece.tokens]) == len(ids(text))


def test_character_waits_until_it_is_whole():
    llama = ids("🦙")
    assert len(llama) > 1
    pieces = spoken(llama)
    assert [piece.text for piece in pieces[: len(llama) - 1]] == [""] * (len(llama) - 1)
    assert pieces[len(llama) - 1].text == "🦙"


def test_unfinished_character_is_left_out():
    assert text_of(spoken((*ids(" a"), *ids("🦙")[:-1]))) == " a"


def test_bytes_that_are_no_character_become_one_mark():
    broken = ids("🦙")[:-1]
    assert text_of(spoken((*broken, *ids("x")))) == "\ufffdx"


def test_special_tokens_have_no_text():
    pieces = spoken((*ids("a"), EOS, *ids("b"), EOS))
    assert text_of(pieces) == "ab"
    assert [token.token for piece in pieces for token in piece.tokens] == [*ids("a"), *ids("b")]


def test_ids_without_a_token_have_no_text():
    assert text_of(spoken((10**6, *ids("a")))) == "a"


@pytest.mark.parametrize(
    ("stops", "text"),
    [
        (["two"], " one "),
        ([" two"], " one"),
        (["e t", "two"], " on"),
        (["three", "two", "one"], " "),
        (["wo th"], " one t"),
        (["four"], " one two three"),
        (["threex"], " one two three"),
        ([" one two three"], ""),
        (["e"], " on"),
    ],
)
def test_stop_strings_across_tokens(stops, text):
    pieces = spoken(ids(" one two three"), stops)
    assert text_of(pieces) == text
    assert pieces[-1].stopped == (text != " one two three")


def test_beginning_of_a_stop_string_is_held_back_and_released():
    finder = StopFinder(["abcd", "bx"])
    assert finder.feed("zab") == ("z", False)
    assert finder.feed("c") == ("", False)
    assert finder.feed("e") == ("abce", False)
    assert finder.feed("ab") == ("", False)
    assert finder.flush() == "ab"
    assert finder.flush() == ""
    assert finder.feed("abx") == ("a", True)


def test_first_complete_stop_string_counts():
    assert StopFinder(["abcd", "bc"]).feed("abcd") == ("a", True)
    assert StopFinder(["abcd", "cd"]).feed("abcd") == ("", True)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    text=st.text("ab", max_size=20),
    stops=st.lists(st.text("ab", min_size=1, max_size=5), max_size=3),
    cuts=st.lists(st.integers(0, 20), max_size=5),
)
def test_where_it_stops_does_not_depend_on_how_text_is_cut(text, stops, cuts):
    def run(parts):
        finder, out = StopFinder(stops), ""
        for part in parts:
            safe, stopped = finder.feed(part)
            out += safe
            if stopped:
                return out, True
        return out + finder.flush(), False

    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [text[start:end] for start, end in itertools.pairwise(places)]
    whole = run([text])
    assert run(parts) == run(list(text)) == whole
    if whole[1]:
        assert not any(stop in whole[0] for stop in stops)
    else:
        assert whole[0] == text


def test_offsets_and_logprobs():
    detokenizer = Detokenizer(tokenizer())
    tokens = ids(" é 🦙 ok")
    found = []
    for token in tokens:
        found += detokenizer.feed(token, TokenLogprobs(-float(token))).tokens
    assert [token.token for token in found] == list(tokens)
    assert [token.logprobs.chosen for token in found] == [-float(token) for token in tokens]
    assert found[0].start == 0
    assert found[-1].end == len(" é 🦙 ok")
    assert all(left.end == right.start for left, right in itertools.pairwise(found))


def test_tokens_past_a_stop_string_are_not_reported():
    pieces = spoken(ids(" one two three"), [" two"])
    assert [token.token for piece in pieces for token in piece.tokens] == list(ids(" one"))
    cut = spoken(ids(" one two"), ["wo"])
    assert [token.token for piece in cut for token in piece.tokens] == list(ids(" one two"))
    held = spoken(ids(" one"), [" one two"])
    assert [token.token for piece in held for token in piece.tokens] == list(ids(" one"))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(tokens=st.lists(st.integers(0, 49151), max_size=12))
def test_random_tokens_are_text_as_the_library_decodes_it(tokens):
    whole = tokenizer()._tokenizer.decode(tokens, skip_special_tokens=True)
    pieces = spoken(tokens)
    assert whole.startswith(text_of(pieces))
    assert set(whole[len(text_of(pieces)) :]) <= {"\ufffd"}
