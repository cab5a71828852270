"""Needles stand at their depths, the prompt is as long as wanted, and an answer shows what was read of it."""

import random

import pytest
from tests.check.scripted_bench import answered, count_words

from kvfence.check.asks import Endpoint
from kvfence.check.scenarios.boundary_prompt import Form, Recall, long_prompt, recall_in


def prompt_of(tokens=1_000, form=Form.LIST, seed=1):
    return long_prompt(tokens, form, random.Random(seed), count_words)


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("tokens", [64, 500, 4_000])
def test_it_is_at_most_as_long_as_wanted(form, tokens):
    prompt = prompt_of(tokens, form)
    assert prompt.tokens == count_words(prompt.text) <= tokens
    assert prompt.tokens >= 0.97 * tokens - 20


def test_needles_stand_at_even_depths_and_nowhere_else():
    prompt = prompt_of(4_000)
    words = prompt.text.replace(".", "").split()
    at = [words.index(word) / len(words) for word in prompt.words]
    assert at == pytest.approx([0, 0.25, 0.5, 0.75, 1.0], abs=0.02)
    assert all(words.count(word) == 1 for word in prompt.words)


def test_two_prompts_have_no_head_in_common():
    rng = random.Random(3)
    one, other = (long_prompt(300, Form.LIST, rng, count_words) for _ in range(2))
    assert one.text[:20] != other.text[:20]


def test_all_come_back():
    prompt = prompt_of()
    assert recall_in(answered(", ".join(prompt.words).upper()), prompt).count == 5


def test_a_word_within_a_word_is_none():
    prompt = prompt_of()
    assert recall_in(answered("x".join(prompt.words)), prompt).count == 0


def test_what_an_answer_had_no_room_for_is_unknown():
    prompt = prompt_of()
    recall = recall_in(answered(" ".join(prompt.words[:3]), finish="length"), prompt)
    assert recall.seen == (True, True, True, None, None)
    assert not recall.is_only_one_end
    assert str(recall) == "yes, yes, yes, unknown, unknown"
    nothing = recall_in(answered("The river sat near", finish="length"), prompt)
    assert nothing.seen == (False,) * 5


@pytest.mark.parametrize(
    ("seen", "is_one_end"),
    [
        ((False, False, False, True, True), True),
        ((True, True, False, False, False), True),
        ((True, False, False, False, True), False),
        ((False, False, True, False, False), False),
        ((False,) * 5, False),
        ((True,), False),
    ],
)
def test_a_cut_end_is_told_from_a_forgotten_middle(seen, is_one_end):
    assert Recall(seen).is_only_one_end is is_one_end


def test_the_echo_must_go_on():
    prompt = prompt_of(form=Form.ECHO)
    (word,) = prompt.words
    assert recall_in(answered(f" {word} {word} {word}"), prompt).count == 1
    assert recall_in(answered(f" {word}. The river"), prompt).count == 0
    ask = prompt.ask(mark="probe", timeout_s=9.0, is_heavy=True, max_tokens=8)
    assert (ask.endpoint, ask.is_heavy, ask.prompt_tokens) == (Endpoint.COMPLETIONS, True, prompt.tokens)
    assert prompt_of().ask(mark="x", timeout_s=1.0, is_heavy=False, max_tokens=8).endpoint is None
