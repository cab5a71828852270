"""Markers: what is found, what is not, and how often chance alone would be taken for a leak."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.check.scripted_bench import plain_known

from kvfence.check.asks import Endpoint
from kvfence.check.markers import (
    BITS_MIN,
    BITS_TO_CLAIM,
    COMPARISONS_FORESEEN,
    WORDS,
    MarkerBook,
    is_shown,
    letters_of,
    sequences_of,
)
from kvfence.check.markers_prompts import bait_for, copying_endpoint, prompt_tokens_max, prompts_for
from kvfence.check.markers_words import ALPHABETS, WORD_LETTERS

seeds = st.integers(0, 2**32)


def book_of(*owners: str, seed: int = 1, **options):
    book, source = MarkerBook(**options), random.Random(seed)
    return book, [book.mint(owner, source) for owner in owners]


def pieces_of(words, source):
    """Words put together again in one of the ways in which servers and models mangle text."""
    joint = source.choice(["", " ", "\n", ", ", " - ", "; \u00b7 ", "\t", "\u200b", '","', "\\n"])
    case = source.choice([str.lower, str.upper, str.title, str.capitalize])
    spread = source.choice([lambda word: word, lambda word: " ".join(word), lambda word: "\u2581".join(word)])
    return joint.join(spread(case(word)) for word in words)


class TestAlphabets:
    def test_are_disjoint_and_of_one_length(self):
        words = [word for alphabet in ALPHABETS for word in alphabet]
        assert len(set(words)) == len(words)
        assert {len(alphabet) for alphabet in ALPHABETS} == {128}
        assert all(re.fullmatch(f"[a-z]{{{WORD_LETTERS}}}", word) for word in words)

    @pytest.mark.parametrize("alphabet", ALPHABETS)
    def test_no_word_stands_across_the_border_of_two(self, alphabet):
        for cut in range(1, WORD_LETTERS):
            heads = {word[:cut] for word in alphabet}
            tails = {word[cut:] for word in alphabet}
            # A third word would be the tail of one and the head of the next.
            across = [
                word
                for word in alphabet
                if word[: WORD_LETTERS - cut] in tails and word[WORD_LETTERS - cut :] in heads
            ]
            assert across == []


class TestMint:
    def test_bits_are_enough_and_true(self):
        _, (marker,) = book_of("a")
        assert marker.bits >= BITS_MIN
        assert marker.bits == 110  # log2(128 · 127 · … · 113)

    def test_the_same_source_draws_the_same_marker(self):
        assert book_of("a")[1] == book_of("a")[1] != book_of("a", seed=2)[1]

    def test_a_word_names_its_owner(self):
        _, markers = book_of("a", "b", "c", "d", "e", "f")
        for one in markers:
            assert not any(
                set(one.text.split()) & set(other.text.split()) for other in markers if other is not one
            )

    def test_more_owners_than_alphabets_share_them(self):
        book, markers = book_of(*"abcdefg")
        assert len(book.live) == 7
        assert book.scan(markers[6].text, "content", own=(markers[0],))


class TestFound:
    @given(seeds)
    def test_a_whole_marker_however_it_is_written(self, seed):
        source = random.Random(seed)
        book, (own, foreign) = book_of("a", "b", seed=seed)
        text = f"Well, {pieces_of(foreign.text.split(), source)} and so on."
        (hit,) = book.scan(text, "content", own=(own,))
        assert hit.marker == foreign
        assert hit.place == "content"
        assert hit.share == 1
        assert hit.bits >= BITS_TO_CLAIM

    @given(seeds, st.integers(0, 5), st.integers(0, 5))
    def test_one_that_was_cut_at_either_end(self, seed, head, tail):
        book, (foreign,) = book_of("b", seed=seed)
        kept = foreign.text.split()[head : WORDS - tail]
        hits = book.scan(" ".join(kept), "content")
        assert bool(hits) == (len(kept) >= 9)  # 9 words: what 40 bits take after a single short text
        assert all(hit.share == len(kept) / WORDS for hit in hits)

    @given(seeds, st.integers(1, 14))
    def test_one_word_wrong(self, seed, place):
        book, (foreign,) = book_of("b", seed=seed)
        words = foreign.text.split()
        words[place] = next(word for word in ALPHABETS[0] if word not in words)
        (hit,) = book.scan(" ".join(words), "content")
        assert hit.share == 15 / 16

    @given(seeds, st.integers(1, 14))
    def test_one_word_missing(self, seed, place):
        """A small model says "size" for "sized", which is no word of ours."""
        book, (foreign,) = book_of("b", seed=seed)
        words = foreign.text.split()
        del words[place]
        (hit,) = book.scan(" ".join(words), "content")
        assert hit.share >= 14 / 16  # of two that stand apart, one may not be worth its price

    @given(seeds, st.integers(1, 15))
    def test_one_word_too_many(self, seed, place):
        book, (foreign,) = book_of("b", seed=seed)
        words = foreign.text.split()
        words.insert(place, words[place - 1])
        (hit,) = book.scan(" ".join(words), "content")
        assert hit.share >= 15 / 16

    @given(seeds, st.integers(1, 15))
    def test_a_piece_of_one_that_is_said_line_after_line(self, seed, start):
        """A page of sixteen tokens begins anywhere in a line."""
        book, (foreign,) = book_of("b", seed=seed)
        (hit,) = book.scan(" ".join((foreign.text.split() * 2)[start : start + 14]), "content")
        assert hit.share >= 11 / 16

    def test_words_of_nobody_in_between(self):
        book, (foreign,) = book_of("b")
        listed = "\n".join(f"{number}. the {word}," for number, word in enumerate(foreign.text.split()))
        assert book.scan(listed, "content")

    def test_two_that_are_interleaved(self):
        book, (own, one, two) = book_of("a", "b", "c")
        mixed = " ".join(
            word for both in zip(one.text.split(), two.text.split(), strict=True) for word in both
        )
        assert {hit.marker for hit in book.scan(mixed, "content", own=(own,))} == {one, two}

    def test_accents_and_wide_letters(self):
        book, (foreign,) = book_of("b")
        wide = "".join(chr(ord(letter) + 0xFEE0) if letter.isalpha() else letter for letter in foreign.text)
        assert book.scan(wide, "content")
        assert book.scan(foreign.text.replace("e", "\u00e9"), "content")

    def test_beside_ones_own(self):
        book, (own, foreign) = book_of("a", "b")
        (hit,) = book.scan(f"{own.text} {foreign.text}", "content", own=(own,))
        assert hit.marker == foreign

    def test_the_surest_first(self):
        book, (one, two) = book_of("a", "b")
        cut = " ".join(one.text.split()[:12])
        assert [hit.marker for hit in book.scan(f"{cut} {two.text}", "content")] == [two, one]


class TestNotFound:
    @given(seeds)
    def test_ones_own_marker_however_it_is_mangled(self, seed):
        source = random.Random(seed)
        book, markers = book_of("a", "a", "b", seed=seed)
        words = source.choices(markers[0].text.split(), k=60)
        assert book.scan(markers[0].text, "content", own=(markers[0],)) == ()
        assert book.scan(pieces_of(words, source), "content", own=(markers[0],)) == ()

    def test_a_word_of_ones_own_that_is_foreign_too_counts_for_nothing(self):
        """Two markers with nearly all words in common: only what is not one's own counts."""
        book, (foreign,) = book_of("a")
        words = foreign.text.split()
        own = type(foreign)(text=" ".join(words[:10]), owner="b", bits=70)
        assert book.scan(foreign.text, "content", own=(own,)) == ()
        assert book.scan(foreign.text, "content")

    def test_a_few_words(self):
        book, (foreign,) = book_of("b")
        assert book.scan(" ".join(foreign.text.split()[:6]), "content") == ()

    def test_its_words_in_another_order(self):
        book, (foreign,) = book_of("b")
        assert book.scan(" ".join(sorted(foreign.text.split())), "content") == ()

    def test_one_that_was_retired(self):
        book, (foreign, other) = book_of("b", "b")
        book.retire(foreign)
        book.retire(foreign)
        assert book.live == (other,)
        assert book.scan(foreign.text, "content") == ()
        assert book.scan(other.text, "content")

    def test_nothing_is_looked_for_before_anything_was_minted(self):
        assert MarkerBook().scan("anything", "content") == ()

    @given(st.text(max_size=300), seeds)
    def test_any_text(self, text, seed):
        book, _ = book_of("a", "b", seed=seed)
        assert book.scan(text, "content") == ()


class TestBound:
    def test_comparisons_are_counted(self):
        book, (own, _, _) = book_of("a", "b", "c")
        book.scan("x" * 100, "content", own=(own,))
        assert book.comparisons == (100 // WORD_LETTERS + WORDS) * 2
        book.scan("", "content")
        assert book.comparisons == (100 // WORD_LETTERS + WORDS) * 2 + WORDS * 3

    def test_what_was_compared_before_takes_from_what_is_left(self):
        book, (foreign,) = book_of("b")
        piece = " ".join(foreign.text.split()[:10])
        (before,) = book.scan(piece, "content")
        book.comparisons = 2**24
        assert book.scan(piece, "content") == ()
        (after,) = book.scan(foreign.text, "content")
        assert before.bits > BITS_TO_CLAIM < after.bits < 110 - 24

    @pytest.mark.parametrize("noise", ["the same alphabet", "random letters", "another marker's words"])
    def test_false_alarms_are_rarer_than_said(self, noise):
        """At a claim of 3 bits at most one run in eight may raise a false alarm; of the real 40, nobody sees one.

        Each run has 20 markers and 10 texts of 200 words. The rate is far below its bound: shapes and looks
        are paid for in full, and most never come up.
        """
        runs, alarms = 150, 0
        for seed in range(runs):
            source = random.Random(seed)
            book, markers = book_of(*["a"] * 20, seed=seed + runs, bits_to_claim=3)
            alarms += any(
                book.scan(self.noise(noise, source, markers), "content", own=markers[:1]) for _ in range(10)
            )
        assert alarms / runs <= 2**-3

    def test_the_claim_is_what_keeps_them_rare(self):
        """The rig is alive: with a claim far below zero bits it cries wolf in most runs."""
        alarms = 0
        for seed in range(50):
            source = random.Random(seed)
            book, markers = book_of(*["a"] * 20, seed=seed + 50, bits_to_claim=-14)
            alarms += bool(book.scan(self.noise("the same alphabet", source, markers), "content"))
        assert alarms > 25

    def noise(self, kind, source, markers):
        if kind == "random letters":
            return "".join(source.choices("aeinorst ", k=1_000))
        # What a model says that was given the first marker alone.
        pool = ALPHABETS[0] if kind == "the same alphabet" else markers[0].text.split()
        return " ".join(source.choices(pool, k=200))


class TestShown:
    def test_agrees_with_the_scan_of_a_long_run(self):
        book, (foreign,) = book_of("b")
        words = foreign.text.split()
        for count in range(1, WORDS + 1):
            book.comparisons = COMPARISONS_FORESEEN - WORDS - count
            text = " ".join(words[:count])
            assert is_shown(foreign, text) == bool(book.scan(text, "content")) == (count >= 12)

    def test_is_of_one_marker(self):
        _, (one, two) = book_of("a", "b")
        assert is_shown(one, f"so: {one.text.upper()}")
        assert not is_shown(two, one.text)


class TestReading:
    def test_letters(self):
        assert letters_of("A-b\u00c9 1\u00df\n\uff21") == "abessa"

    def test_words_do_not_overlap(self):
        first, second = ALPHABETS[0][:2]
        assert sequences_of(letters_of(f"{first}{second}"))[0] == [first, second]

    def test_is_fast(self):
        """A thousand markers and 10 kB of nothing but words of theirs. The limit has room for a busy machine."""
        source = random.Random(1)
        book, _ = book_of(*[f"request {number}" for number in range(1_000)])
        text = " ".join(source.choice(source.choice(ALPHABETS)) for _ in range(1_700))
        began = time.process_time()
        book.scan(text, "content")
        assert time.process_time() - began < 0.3


class TestPrompts:
    @pytest.mark.parametrize("endpoint", Endpoint)
    def test_hold_the_marker_or_nothing_of_it(self, endpoint):
        _, (marker,) = book_of("a")
        prompts = prompts_for(marker, endpoint, lines=3)
        assert prompts.plant.count(marker.text) == 3
        assert is_shown(marker, prompts.quote)
        assert all(words == [] for words in sequences_of(letters_of(bait_for(endpoint))))
        assert len(prompts.plant.split()) < prompt_tokens_max(3)

    def test_go_where_copying_needs_no_obedience(self):
        assert copying_endpoint(plain_known()) is Endpoint.COMPLETIONS
        assert copying_endpoint(plain_known(has=frozenset())) is Endpoint.CHAT
