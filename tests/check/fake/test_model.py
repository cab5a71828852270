"""The toy model does what it reads, whoever wrote it, and no more than its obedience says."""

import pytest
from tests.check.fake.jobs import Job
from tests.check.fake.model import ToyModel
from tests.check.fake.reading import continuation, wish_of
from tests.check.fake.vocabulary import ASSISTANT, USER, pieces_of

JOB = Job(tenant="a", words=(), max_tokens=None, model="toy")


def said(text, **more):
    return "".join(ToyModel(**more).answer(pieces_of(text), job=JOB).words).strip()


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("Reply ONLY: FOUR", "FOUR"),
        ("Answer only with the word blue", "blue"),
        ('Repeat this line exactly: "a b c"', "a b c"),
        ("The code word is oak. What is the code word?", "oak"),
        ("Code word one is oak.\nCode word two is fox.\nWhat are the code words?", "oak fox"),
        ("Reply ONLY: one\nReply ONLY: two", "two"),
        ("Count from 3 to 5", "3, 4, 5"),
        ("The river stood near the garden.", None),
    ],
)
def test_the_last_wish_is_found(text, wish):
    assert wish_of(text) == wish


def test_a_choice_is_made_by_what_was_read():
    text = "The code word is fox.\nWhich was the code word?\nA) oak\nB) fox\nC) owl"
    assert wish_of(text) == "B"


def test_a_line_that_was_begun_before_goes_on_as_before():
    assert continuation("Line: a b\nLine: a b\nLine:")[:4] == [" a", " b", "\nLine", ":"]
    assert continuation("oak oak oak oak")[:2] == [" oak", " oak"]
    assert continuation("Head.\nLine:") == []


def test_it_goes_on_with_what_stands_after_its_mark():
    assert said(f"{USER}\nReply ONLY: one\n{ASSISTANT} foreign words").startswith("foreign words")


def test_it_follows_as_often_as_it_is_said_to():
    follows = sum(said(f"Reply ONLY: word{n}", obedience=0.7) == f"word{n}" for n in range(400))
    assert 0.6 < follows / 400 < 0.8
    assert all(said(f"Reply ONLY: word{n}") == f"word{n}" for n in range(20))


def test_one_word_more_in_what_it_read_changes_free_words_and_likelihoods():
    model = ToyModel()
    answers = [model.answer(pieces_of(text), job=JOB) for text in ("Tell a tale.", "Tell a tale. x")]
    assert answers[0].words != answers[1].words
    tops = [model.top(answer, 0, "a") for answer in answers]
    assert tops[0] != tops[1]


def test_an_unwritten_slot_says_nothing():
    model = ToyModel()
    assert model.answer(["Reply ONLY: ", None, "x"], job=JOB).words == ["x"]
