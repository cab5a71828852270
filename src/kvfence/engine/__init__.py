"""The engine: any Hugging Face causal LM over our own pages.

Importing the package imports no torch: the names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from kvfence.lazy import on_first_use

if TYPE_CHECKING:
    from kvfence.engine.checkpoint import load_model
    from kvfence.engine.decode_executor import DecodeExecutor, Row, Stepped, count_token
    from kvfence.engine.loading import (
        ModelFolder,
        default_model_path,
        is_converted,
        read_chat_template,
        read_tokenizer_config,
        resolve_model,
    )
    from kvfence.engine.model import DecodeRow, PagedModel, PrefillChunk, set_threads
    from kvfence.engine.pool_views import PoolViews
    from kvfence.engine.prefill_executor import ChunkDone, PrefillExecutor, PromptJob
    from kvfence.engine.prefill_schedule import ChunkPlan
    from kvfence.engine.refusals import RefusedModelError
    from kvfence.engine.sampling import SamplingParams, TokenLogprobs

__all__ = [
    "ChunkDone",
    "ChunkPlan",
    "DecodeExecutor",
    "DecodeRow",
    "ModelFolder",
    "PagedModel",
    "PoolViews",
    "PrefillChunk",
    "PrefillExecutor",
    "PromptJob",
    "RefusedModelError",
    "Row",
    "SamplingParams",
    "Stepped",
    "TokenLogprobs",
    "count_token",
    "default_model_path",
    "is_converted",
    "load_model",
    "read_chat_template",
    "read_tokenizer_config",
    "resolve_model",
    "set_threads",
]

_HOMES = {
    "ChunkDone": "prefill_executor",
    "ChunkPlan": "prefill_schedule",
    "DecodeExecutor": "decode_executor",
    "DecodeRow": "model",
    "ModelFolder": "loading",
    "PagedModel": "model",
    "PoolViews": "pool_views",
    "PrefillChunk": "model",
    "PrefillExecutor": "prefill_executor",
    "PromptJob": "prefill_executor",
    "RefusedModelError": "refusals",
    "Row": "decode_executor",
    "SamplingParams": "sampling",
    "Stepped": "decode_executor",
    "TokenLogprobs": "sampling",
    "count_token": "decode_executor",
    "default_model_path": "loading",
    "is_converted": "loading",
    "load_model": "checkpoint",
    "read_chat_template": "loading",
    "read_tokenizer_config": "loading",
    "resolve_model": "loading",
    "set_threads": "model",
}

__getattr__ = on_first_use(__name__, _HOMES)
