"""What a trial says of itself: leaked, stopped by its own layer, or neither. And how it waits."""

from dataclasses import replace

import pytest

from kvfence.faults import Layer
from kvfence.protocol.errors import InternalError
from kvfence.replay import trial as module
from kvfence.replay.scene import Play
from kvfence.replay.secret import Secret
from kvfence.replay.trial import leave_secret, run_trial, wait_home
from tests.replay.fakes import FakeDeployment
from tests.replay.samples import ADMISSION_TRIAL, HONEST, LEAKING_TRIAL, MANIFEST_TRIAL, PLAY, answered


def test_words_or_foreign_slots_that_were_read_are_a_leak():
    assert LEAKING_TRIAL.leaked
    assert replace(LEAKING_TRIAL, page_map=None).leaked
    assert replace(LEAKING_TRIAL, words=()).leaked
    assert not replace(LEAKING_TRIAL, words=(), page_map=None).leaked
    assert LEAKING_TRIAL.foreign_read == 6
    assert MANIFEST_TRIAL.foreign_read == ADMISSION_TRIAL.foreign_read == 0


def test_tokens_of_a_guess_from_the_cache_are_a_leak():
    silent = replace(LEAKING_TRIAL, words=(), page_map=None)
    assert not silent.leaked
    assert replace(silent, reused_tokens=1).leaked


def test_a_layer_stops_by_its_own_sign_alone():
    assert MANIFEST_TRIAL.is_stopped
    assert ADMISSION_TRIAL.is_stopped
    assert not replace(MANIFEST_TRIAL, reasons=("seal_torn",)).is_stopped
    assert not replace(MANIFEST_TRIAL, reasons=()).is_stopped
    assert not replace(MANIFEST_TRIAL, words=("quokka",)).is_stopped
    assert replace(MANIFEST_TRIAL, alone=Layer.SEAL, reasons=("seal_torn",)).is_stopped
    assert not answered(ADMISSION_TRIAL, code="busy").is_stopped
    assert not answered(ADMISSION_TRIAL, status=500).is_stopped
    assert not LEAKING_TRIAL.is_stopped


def test_an_honest_time_is_a_matter_of_length():
    # 40 tokens took 2 s, so 60 take 3.
    assert LEAKING_TRIAL.honest_seconds == pytest.approx(3.0)
    nothing = replace(HONEST, first_token_seconds=None)
    with pytest.raises(InternalError, match="tenant A"):
        _ = replace(LEAKING_TRIAL, honest=nothing).honest_seconds


@pytest.fixture
def deployment(monkeypatch):
    made = FakeDeployment()
    monkeypatch.setattr(module.PoolView, "of_deployment", lambda run_dir: made.view)
    return made


def test_a_trial_in_order(deployment):
    said = []
    made = run_trial(deployment, PLAY, None, said.append)
    assert deployment.asked == ["tenant-a stays", "tenant-a", "tenant-a leaves", "tenant-b"]
    assert made.words == ("zanzibar", "quokka", "marmalade")
    assert (made.answer.status, made.honest.status, made.alone) == (200, 200, None)
    assert made.page_map is None, "the fake's pool names no lease"
    assert len(said) == 2


def test_reasons_are_waited_for_when_the_answer_speaks_of_integrity(deployment):
    deployment.refuses = "manifest_tokens"
    made = run_trial(deployment, PLAY, Layer.MANIFEST, lambda words: None)
    assert made.reasons == ("manifest_tokens",)
    assert made.is_stopped


def test_tenant_a_must_be_served(deployment):
    prompts = PLAY.prompts(deployment.count_tokens)
    deployment.serves_first = False
    with pytest.raises(InternalError, match="first prompt was not served"):
        leave_secret(deployment, prompts, lambda words: None)
    leave_secret(deployment, prompts, lambda words: None, may_be_refused=True)
    deployment.serves_first = True
    deployment.statuses["tenant-a"] = 503
    with pytest.raises(InternalError, match="answered 503"):
        leave_secret(deployment, prompts, lambda words: None)


def test_a_fault_in_every_hand_over_may_spoil_as_requests_too(deployment):
    deployment.serves_first = False
    plain = Play.of("false-completion/short-transfer", Secret())
    run_trial(deployment, plain, Layer.SEAL, lambda words: None)
    with pytest.raises(InternalError, match="first prompt was not served"):
        run_trial(deployment, plain, None, lambda words: None)
    with pytest.raises(InternalError, match="first prompt was not served"):
        run_trial(deployment, PLAY, Layer.SEAL, lambda words: None)


def test_leases_that_stay_are_an_error(deployment):
    deployment.leases = 1
    with pytest.raises(InternalError, match="leases are left"):
        wait_home(deployment)
