"""What a text is made of, and what that weighs."""

import pytest

from kvfence.check.tokens_pieces import Pieces, Weights, counting, pieces_of
from kvfence.check.tokens_words import MORE_WORDS, WORDS


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", Pieces()),
        ("animal answer", Pieces(words=2)),
        ("Animal ANSWER", Pieces(words=1, rest=2)),
        ("the animal", Pieces(words=1, more_words=1)),
        ("animal. Answer!", Pieces(words=2, more_words=2)),
        ("animal_(answer)", Pieces(words=2, rest=3)),
        ("quixotic", Pieces(rest=2)),
        ("zz", Pieces(rest=1)),
        ("12 345", Pieces(rest=6)),
        ("7f3c", Pieces(rest=4)),
        ("ü€", Pieces(rest=2)),
        ("animal\n\nanswer", Pieces(words=2, more_words=2)),
    ],
)
def test_kinds_of_pieces(text, pieces):
    assert pieces_of(text) == pieces


def test_weights_are_summed_and_rounded():
    count = counting(Weights(word=1.5, more_word=2, rest=0.4, overhead=10))
    assert count("") == 10
    assert count("animal the zz") == 14  # 10 + 1.5 + 2 + 0.4


def test_the_two_lists_have_nothing_in_common():
    assert not set(WORDS) & set(MORE_WORDS)
    assert len(set(WORDS)) == len(WORDS)
    assert all(word.isalpha() and word.islower() and len(word) <= 7 for word in WORDS)
