"""The model is resolved without torch, and converted by a process of its own."""

import io
import json

import pytest
from rich.console import Console

from kvfence.protocol.errors import OperatorError
from kvfence.serving.banner import StartView
from kvfence.serving.model_source import find_model


@pytest.fixture
def output():
    return io.StringIO()


@pytest.fixture
def view(output):
    return StartView(Console(file=output, width=80))


def test_a_folder_is_taken_as_it_is(tmp_path, view, output):
    (tmp_path / "config.json").write_text(json.dumps({"n_ctx": 4}))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert find_model(str(tmp_path), view).config == {"n_ctx": 4}
    assert output.getvalue() == ""


def test_what_cannot_be_converted_is_said(tmp_path, view, output, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF?")
    with pytest.raises(OperatorError, match=r"cannot be converted: .*broken\.gguf") as refusal:
        find_model(str(broken), view)
    assert "Traceback" not in str(refusal.value)
    assert "model: converting it, once" in output.getvalue()


def test_a_model_that_is_not_there_is_not_converted(tmp_path, view, output):
    with pytest.raises(OperatorError, match=r"there is no model at .*nowhere"):
        find_model(str(tmp_path / "nowhere"), view)
    assert output.getvalue() == ""
