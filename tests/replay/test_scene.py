"""What is played: flags that differ in one layer, prompts in the band, and faults that have no scene."""

import pytest

from kvfence.faults import CATALOGUE, SWITCHES, Layer
from kvfence.protocol.errors import OperatorError
from kvfence.replay.scene import (
    B_BAND_TOKENS,
    CONTEXT_TOKENS,
    INCIDENT,
    INCIDENT_BEHIND_ADMISSION,
    LONG_TOKENS,
    PREFILL_POOL_TOKENS,
    SCENES,
    Play,
    Scene,
    fixed_flags,
)
from kvfence.replay.secret import Secret


def play(name=INCIDENT):
    return Play.of(name, Secret())


def count(text):
    """A tokenizer that makes a token of a word, and one of the space at the end."""
    return len(text.split()) + text.endswith(" ")


def off(flags):
    return {flags[i + 1] for i, word in enumerate(flags) if word == "--unsafe-without"}


def test_every_scene_is_of_a_fault_that_runs_on_the_engine():
    assert set(SCENES) <= set(CATALOGUE)
    assert all(CATALOGUE[name].runs_on_engine for name in SCENES)


def test_the_leak_has_every_layer_off_and_a_layer_alone_all_others():
    every = {layer.value for layer in SWITCHES}
    assert off(play().flags(None)) == every
    for layer in play().layers:
        assert off(play().flags(layer)) == every - {layer.value}


def test_the_incident_is_stopped_by_admission_and_by_its_own_layers():
    assert play().layers[:3] == (Layer.ADMISSION, Layer.MANIFEST, Layer.SEAL)
    flags = play().flags(Layer.ADMISSION)
    # Admission is what the incident had lost; the half behind it stays on.
    assert INCIDENT_BEHIND_ADMISSION in flags
    assert flags[:2] == ("--context", "fit")
    assert INCIDENT in play().flags(Layer.MANIFEST)


@pytest.mark.parametrize("name", [name for name in SCENES if name != INCIDENT])
def test_layers_of_another_fault_are_those_of_the_catalogue(name):
    layers = play(name).layers
    assert bool(layers) is (SCENES[name] is not Scene.GUESS)
    assert set(layers) == set(SWITCHES) & set(CATALOGUE[name].caught_by)


def test_the_prompts_lie_where_the_scene_wants_them():
    prompts = play().prompts(count)
    assert (
        PREFILL_POOL_TOKENS < B_BAND_TOKENS <= count(prompts.b.prompt) < CONTEXT_TOKENS - prompts.b.max_tokens
    )
    for ask in (prompts.a_first, prompts.a_second, prompts.long):
        assert count(ask.prompt) + ask.max_tokens <= PREFILL_POOL_TOKENS
    assert count(prompts.b_shorter.prompt) + prompts.b_shorter.max_tokens <= PREFILL_POOL_TOKENS
    assert count(prompts.long.prompt) > LONG_TOKENS - 50
    # Together A's two prompts cover B's.
    assert count(prompts.a_first.prompt) + count(prompts.a_second.prompt) > count(prompts.b.prompt)
    plain = play("false-completion/short-transfer").prompts(count)
    assert count(plain.b.prompt) + plain.b.max_tokens <= PREFILL_POOL_TOKENS


def test_a_guess_is_as_prompt_and_is_played_with_a_cache():
    guess = play("shared-cache-timing/one-domain")
    prompts = guess.prompts(count)
    assert prompts.b.prompt == prompts.a_second.prompt
    assert prompts.b.tenant != prompts.a_second.tenant
    assert "--no-prefix-cache" not in guess.flags(None)
    assert "--no-prefix-cache" in play().flags(None)


def test_only_a_says_the_secret():
    prompts = play().prompts(count)
    for word in Secret().words:
        assert word in prompts.a_first.prompt
        assert word in prompts.a_second.prompt
        assert word not in prompts.b.prompt


def test_the_fix_has_nothing_unsafe():
    assert not [word for word in fixed_flags("fit") if "unsafe" in word or "leaks" in word]
    assert fixed_flags("2048")[:2] == ("--context", "2048")


def test_a_fault_without_a_scene_is_sent_to_the_simulator():
    with pytest.raises(OperatorError, match="kvfence simulate --fault step-outlives-pages/free-under-step"):
        play("step-outlives-pages/free-under-step")
    with pytest.raises(OperatorError, match="did you mean rejected-continues/incident"):
        play("rejected-continues/incidents")


def test_scenes_say_what_b_sends():
    assert {scene.value for scene in Scene} == {
        "a prompt that is longer than the prefill pool and fits the decode pool",
        "a prompt that fits every pool",
        "the very prompt that tenant A has sent, as one that was guessed",
    }
