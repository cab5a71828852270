"""The self-test fires on wrong attention, stays silent on right attention, and is remembered."""

import pytest
import torch
from tests.engine.tiny_models import served

from kvfence.engine import attention_decode, attention_prefill, selftest
from kvfence.engine.attention_kernels import attend_dense
from kvfence.engine.attention_pages import additive
from kvfence.engine.refusals import RefusedModelError
from kvfence.engine.selftest import ensure_tested, run_selftest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kvfence" / "selftests"


def one_slot_too_many(visible, dtype):
    return additive(visible | visible.roll(1, -1), dtype)


def no_mask(visible, dtype):
    return additive(torch.ones_like(visible), dtype)


FAULTS = {
    "decode attends to other rows' filling": (attention_decode, "additive", no_mask),
    "prefill sees one token of the future": (attention_prefill, "additive", one_slot_too_many),
    "prefill is not causal": (
        attention_prefill,
        "attend_causal",
        lambda query, key, value, rules: attend_dense(query, key, value, None, rules),
    ),
    "logits of the first token": (
        attention_prefill,
        "_last_tokens",
        lambda chunks, order: [0 for chunk in chunks if chunk.wants_logits],
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_it_fires_on(fault, dtype, monkeypatch):
    module, name, wrong = FAULTS[fault]
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(RefusedModelError, match="over pages its logits are off by"):
        run_selftest(served("llama", dtype))


def test_it_fires_on_a_window_that_is_ignored(monkeypatch):
    paged = served("mistral")
    plan = attention_decode.DecodeStep._make_plan
    monkeypatch.setattr(
        attention_decode.DecodeStep, "_make_plan", lambda self, window, dtype: plan(self, None, dtype)
    )
    with pytest.raises(RefusedModelError):
        run_selftest(paged)


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt_oss"])
def test_it_is_silent_on_right_attention_in_bfloat16_and_leaves_the_weights_alone(name):
    paged = served(name, torch.bfloat16)
    before = {key: (value.data_ptr(), value.dtype) for key, value in paged.module.state_dict().items()}
    windows = [fact.window for fact in paged.facts]
    assert run_selftest(paged) < selftest.FLOAT32_TOLERANCE
    assert before == {
        key: (value.data_ptr(), value.dtype) for key, value in paged.module.state_dict().items()
    }
    assert windows == [fact.window for fact in selftest.probe(paged.module)]


def test_weights_too_large_to_widen_are_tested_as_they_run(monkeypatch):
    monkeypatch.setattr(selftest, "available_memory_bytes", lambda: 1000)
    share = run_selftest(served("llama", torch.bfloat16))
    assert selftest.FLOAT32_TOLERANCE < share < selftest.ROUNDED_TOLERANCE


def test_logits_that_are_not_numbers_are_refused(monkeypatch):
    monkeypatch.setattr(selftest, "differences", lambda *_: torch.tensor([float("nan")]))
    with pytest.raises(RefusedModelError):
        run_selftest(served("llama"))


def test_a_window_that_cannot_be_narrowed_is_refused(monkeypatch):
    paged = served("mistral")
    monkeypatch.setattr(selftest, "probe", lambda module: paged.facts)
    with pytest.raises(RefusedModelError, match="cannot be narrowed"):
        run_selftest(paged)
    assert paged.module.config.sliding_window == paged.facts[0].window


def count_runs(monkeypatch):
    runs = []
    real = selftest.run_selftest
    monkeypatch.setattr(selftest, "run_selftest", lambda paged: runs.append(1) or real(paged))
    return runs


def test_a_pass_is_remembered_for_the_same_weights_and_dtype_only(cache, monkeypatch):
    runs = count_runs(monkeypatch)
    paged = served("llama")
    paged.revision = "a"
    ensure_tested(paged)
    ensure_tested(paged)
    assert len(runs) == 1
    assert len(list(cache.iterdir())) == 1
    paged.revision = "b"
    ensure_tested(paged)
    other = served("llama", torch.bfloat16)
    other.revision = "a"
    ensure_tested(other)
    assert len(runs) == 3


def test_a_failure_is_not_remembered(cache, monkeypatch):
    monkeypatch.setattr(attention_decode, "additive", no_mask)
    paged = served("llama")
    paged.revision = "a"
    for _ in range(2):
        with pytest.raises(RefusedModelError):
            ensure_tested(paged)
    assert not cache.exists()


def test_a_module_without_a_revision_is_tested_each_time(cache, monkeypatch):
    runs = count_runs(monkeypatch)
    paged = served("llama")
    ensure_tested(paged)
    ensure_tested(paged)
    assert len(runs) == 2
    assert not cache.exists()
