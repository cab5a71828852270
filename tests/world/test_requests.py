"""An answer is a function of request and position."""

from tests.world.play import ask

from kvfence.world import Ask


def test_the_tokens_of_a_recomputed_prompt_are_the_prompt_and_what_was_answered():
    one = ask(1, 3)
    assert one.tokens(2) == (100, 101)
    assert one.tokens(5) == (100, 101, 102, one.token_at(3), one.token_at(4))
    assert ask(2, 3, start=1).token_at(3) != one.token_at(3)


def test_an_answer_is_as_long_as_its_limit_or_its_end():
    assert Ask(1, "a", (1,), 5).answer_tokens == 5
    assert Ask(1, "a", (1,), 5, stop_after=3).answer_tokens == 3
    assert Ask(1, "a", (1,), 5, stop_after=9).answer_tokens == 5
