"""The words for filler say nothing that a scenario asks for: none of them is a marker's."""

from kvfence.check.markers_words import ALPHABETS
from kvfence.check.tokens_words import MORE_WORDS, STARTS, WORDS


def test_no_filler_word_is_a_markers():
    assert not {word for alphabet in ALPHABETS for word in alphabet} & set(WORDS)


def test_the_lists_are_long_enough_for_text_without_repeats():
    assert len(WORDS) > 400
    assert len(MORE_WORDS) > 300


def test_texts_begin_with_words_of_the_list():
    assert set(STARTS) < set(WORDS)
    assert len(STARTS) > 50
