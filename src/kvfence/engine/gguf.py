"""Converting a GGUF file into an HF folder with safetensors, once.

Rules: the weights are dequantised to float32, so that a node in float32 or in bfloat16 computes what
transformers computes from the file itself. The folder appears whole or not at all.

It does not decide whether to convert, and holds no lock (`loading` does both).
"""

import contextlib
import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from transformers import AutoModelForCausalLM, AutoTokenizer

from kvfence.engine.loading import CONVERTED_MARK
from kvfence.engine.quiet import quiet_transformers
from kvfence.protocol.errors import OperatorError

# Values of `tokenizer.ggml.pre` that mean one token a digit, as SmolLM and SmolLM2 were trained.
SINGLE_DIGITS = frozenset({"smollm"})


def convert_gguf(source: Path, target: Path, mark: dict[str, str]) -> None:
    """Write the model in `source` to the folder `target`, with its tokenizer and chat template.

    `mark` is stored in the folder last. Raises OperatorError when transformers cannot read the file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".converting-", dir=target.parent))
    try:
        # Its progress bars go to standard error whatever its own settings say.
        with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):
            _write(source, draft)
        (draft / CONVERTED_MARK).write_text(json.dumps(mark))
        if target.exists():  # left there without its mark by something that is not us
            shutil.rmtree(target)
        draft.replace(target)
    except OperatorError:
        raise
    except Exception as error:
        raise OperatorError(
            f"{source} could not be converted ({type(error).__name__}: {error}): "
            "check that the file is whole and that transformers supports its architecture"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(source: Path, folder: Path) -> None:
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, local_files_only=True
    )
    config = loaded.config
    # A fresh model of the same config carries no trace of the quantised source and can be saved.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):
        fresh = type(loaded)(config)
    fresh.load_state_dict(loaded.state_dict(), assign=True)
    fresh.tie_weights()
    fresh.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    tokenizer.save_pretrained(folder)
    if not (folder / "tokenizer.json").is_file():
        raise OperatorError(f"{source} has no tokenizer that the tokenizers library can read")
    if _pre_tokenizer_name(source) in SINGLE_DIGITS:
        split_digits(folder / "tokenizer.json")


def _pre_tokenizer_name(source: Path) -> str | None:
    field = GGUFReader(str(source)).get_field("tokenizer.ggml.pre")
    return None if field is None else str(field.contents())


def split_digits(tokenizer_file: Path) -> None:
    """Let each digit stand alone before byte-level splitting: what a GGUF file says by one word only.

    transformers reads the vocabulary of such a file and not this word, so that "12" would become a
    token that the model never saw in training.
    """
    tokenizer = json.loads(tokenizer_file.read_text(encoding="utf-8"))
    digits = {"type": "Digits", "individual_digits": True}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, tokenizer["pre_tokenizer"]]}
    tokenizer_file.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
