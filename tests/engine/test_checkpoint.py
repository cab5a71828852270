"""Loading refuses before it reads, tests what it loaded, and remembers that it did."""

import pytest
import torch
from tests.engine.tiny_models import SERVED, tiny_module

from kvfence.engine import checkpoint, selftest
from kvfence.engine.checkpoint import load_model, read_module
from kvfence.engine.refusals import RefusedModelError
from kvfence.protocol.errors import OperatorError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def saved(tmp_path, kind, overrides):
    tiny_module(kind, overrides).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_folder_loads_in_a_dtype(tmp_path, dtype):
    path = saved(tmp_path, *SERVED["llama"])
    paged = load_model(path, dtype=dtype)
    assert paged.dtype == dtype
    assert paged.revision is not None
    assert paged.eos_token_ids == (2,)


def test_the_selftest_runs_once_for_a_folder(tmp_path, monkeypatch):
    path = saved(tmp_path, *SERVED["llama"])
    runs = []
    real = selftest.run_selftest
    monkeypatch.setattr(selftest, "run_selftest", lambda paged: runs.append(1) or real(paged))
    load_model(path)
    load_model(path)
    assert len(runs) == 1


def test_a_config_is_refused_before_the_weights_are_read(tmp_path, monkeypatch):
    path = saved(
        tmp_path, "llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}
    )
    (path / "model.safetensors").write_bytes(b"not read")
    with pytest.raises(RefusedModelError, match="dynamic"):
        load_model(path)


def test_broken_weights_are_the_operators_error(tmp_path):
    path = saved(tmp_path, *SERVED["llama"])
    (path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(OperatorError, match="reading the weights failed"):
        load_model(path)


@pytest.mark.parametrize("text", ['{"model_type": "no_such_model"}', "{"])
def test_an_unknown_config_is_the_operators_error(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(OperatorError, match="cannot be read"):
        read_module(tmp_path, torch.float32)


def test_an_unknown_dtype_is_the_operators_error():
    with pytest.raises(OperatorError, match="float32, bfloat16, float16"):
        load_model(dtype="int8")


def test_the_thread_count_is_set(tmp_path, monkeypatch):
    counts = []
    monkeypatch.setattr(checkpoint, "set_threads", counts.append)
    load_model(saved(tmp_path, *SERVED["llama"]), threads=3)
    assert counts == [3]
