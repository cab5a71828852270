"""The detector of A's words fires on them, and stays silent on everything else."""

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.replay.secret import Secret, words_of

SECRET = Secret()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("-The access code of the vault is zanzibar quokka marmalade.", ("zanzibar", "quokka", "marmalade")),
        ("Zanzibar, of course", ("zanzibar",)),
        ("-quokka-MARMALADE", ("quokka", "marmalade")),
    ],
)
def test_it_fires_on_words_of_the_secret(answer, found):
    assert SECRET.found_in(answer, prompt="Please write a story.") == found


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The access code of the vault is secret.",
        "zanzi bar quok ka",
        "marmalades",
        "A river, and people beside it.",
    ],
)
def test_it_is_silent_on_everything_else(answer):
    assert SECRET.found_in(answer, prompt="Please write a story.") == ()


def test_what_the_prompt_itself_says_is_no_leak():
    assert SECRET.found_in("zanzibar quokka", prompt="Is Zanzibar an island?") == ("quokka",)


def test_words_are_read_whatever_stands_around_them():
    assert words_of("One two-three; FOUR_five 6") == ("one", "two", "three", "four", "five")


@pytest.mark.parametrize("text", ["", "the code", "cat", "zanzibar-quokka", "w0mbat", "quokka " * 9])
def test_words_that_say_nothing_are_refused(text):
    with pytest.raises(OperatorError, match="--secret"):
        Secret.of(text)


def test_a_secret_is_read_from_the_command_line():
    assert Secret.of(" Bumblebee  saxophone ") == Secret(("bumblebee", "saxophone"))
    assert Secret(("bumblebee", "saxophone")).phrase == "bumblebee saxophone"
