"""Each act's verdict is seen both true and false."""

from dataclasses import replace

from kvfence.faults import Layer
from kvfence.replay.acts import Act, Fence, Leak, Played, count_numbers
from kvfence.replay.numbers import Figure, Sizes
from kvfence.replay.scene import Play
from kvfence.replay.secret import Secret
from tests.replay.samples import (
    ADMISSION_TRIAL,
    FIX,
    LEAKING_TRIAL,
    MANIFEST_TRIAL,
    PLAY,
    answered,
    numbers,
    played,
)


def test_the_numbers_hold_when_every_figure_agrees():
    made = numbers()
    assert made.holds
    assert not replace(made, figures=(*made.figures, Figure("x", "1", "2"))).holds
    assert "64 tokens is larger than the prefill pool of 40" in made.refusal
    assert count_numbers(Sizes(64, 64, 4)).refusal is None


def test_the_incident_leaks_with_words_and_an_answer_like_any_other():
    assert Leak(PLAY, LEAKING_TRIAL).holds
    assert not Leak(PLAY, replace(LEAKING_TRIAL, words=())).holds
    assert not Leak(PLAY, replace(LEAKING_TRIAL, sent_tokens=61)).holds, "usage counts the placeholder"
    assert not Leak(PLAY, answered(LEAKING_TRIAL, status=500)).holds


def test_a_guess_leaks_when_the_cache_tells():
    guess = Play.of("salt-dropped/domain-ignored", Secret())
    silent = replace(LEAKING_TRIAL, words=(), page_map=None)
    assert not Leak(guess, silent).holds
    assert Leak(guess, replace(silent, reused_tokens=784)).holds


def test_another_fault_leaks_when_foreign_slots_are_read():
    other = Play.of("false-completion/short-transfer", Secret())
    assert Leak(other, replace(LEAKING_TRIAL, words=())).holds
    assert not Leak(other, replace(LEAKING_TRIAL, words=(), page_map=None)).holds


def test_the_fence_holds_when_each_layer_stops_it():
    assert Fence(PLAY, (ADMISSION_TRIAL, MANIFEST_TRIAL)).holds
    through = replace(LEAKING_TRIAL, alone=Layer.SEAL)
    assert not Fence(PLAY, (ADMISSION_TRIAL, through)).holds
    assert not Fence(PLAY, ()).holds, "nothing was tried"
    guess = Play.of("salt-dropped/domain-ignored", Secret())
    assert Fence(guess, ()).holds, "no layer of a running deployment is expected to see it"


def test_a_replay_holds_when_every_act_that_was_played_does():
    assert played().verdicts == dict.fromkeys(Act, True)
    assert played().holds
    assert Played(PLAY).verdicts == {}
    missed = replace(played(), leak=Leak(PLAY, replace(LEAKING_TRIAL, sent_tokens=61)))
    assert missed.verdicts[Act.LEAK] is False
    assert not missed.holds
    assert not replace(played(), fix=replace(FIX, answer=LEAKING_TRIAL.answer)).holds


def test_acts_have_titles():
    assert [act.title for act in Act] == ["The numbers", "The leak", "The fence", "The fix"]
