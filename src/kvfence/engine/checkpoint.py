"""Loading a model folder into memory as a paged model.

Rules: the config is refused before the weights are read; remote code is never run; a model is served
only after its self-test has passed for these weights, this dtype and these library versions.

It does not resolve paths (`loading`) and does not compute (`model`).
"""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from kvfence.engine.loading import ModelFolder, resolve_model
from kvfence.engine.model import PagedModel, adopt, set_threads
from kvfence.engine.pool_views import TORCH_DTYPES
from kvfence.engine.quiet import quiet_transformers
from kvfence.engine.refusals import refuse_config, refusing
from kvfence.engine.selftest import ensure_tested
from kvfence.protocol.errors import OperatorError


def load_model(
    model: ModelFolder | Path | str | None = None,
    *,
    dtype: str = "bfloat16",
    threads: int | None = None,
    device: str = "cpu",
) -> PagedModel:
    """Load the model (None: the default one), refuse it where it cannot run right, and test it once.

    `dtype` is float32, bfloat16 or float16; `threads` None leaves torch's own count. `device` "cuda"
    takes the same path and is untested until it has run on a GPU. Raises OperatorError with the reason.
    """
    if dtype not in TORCH_DTYPES:
        raise OperatorError(f"--dtype {dtype} is not possible: choose one of {', '.join(TORCH_DTYPES)}")
    if threads is not None:
        set_threads(threads)
    folder = model if isinstance(model, ModelFolder) else resolve_model(model)
    with quiet_transformers():
        module = read_module(folder.path, TORCH_DTYPES[dtype])
    paged = adopt(module.to(device), revision=folder.revision)
    ensure_tested(paged)
    return paged


def read_module(path: Path, dtype: torch.dtype) -> Any:
    """Read a folder into a transformers module, attention not yet ours. Raises OperatorError."""
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise OperatorError(
            f"the config in {path} cannot be read ({error}): name a folder with a model that this version "
            "of transformers knows"
        ) from error
    refuse_config(config)
    with refusing(config, "reading the weights"):
        return AutoModelForCausalLM.from_pretrained(path, config=config, dtype=dtype, local_files_only=True)
