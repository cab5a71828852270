"""Tiny random models of many architectures, and small helpers that run them plain and over pages."""

from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from kvfence.engine.attention import IMPLEMENTATION
from kvfence.engine.model import DecodeRow, PagedModel, PrefillChunk, adopt
from kvfence.engine.pool_views import PoolViews, buffer_views
from kvfence.engine.quiet import quiet_transformers

VOCAB = 101
COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    # Large weights, so that attention decides the logits and a wrong one shows.
    "initializer_range": 0.3,
}
WINDOW = 12
GPT2 = {
    "vocab_size": VOCAB,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "initializer_range": 0.3,
}
SERVED: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {}),
    "mistral": ("mistral", {"sliding_window": WINDOW}),
    "gemma3": (
        "gemma3_text",
        {
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "phi3": ("phi3", {}),
    "gpt2": ("gpt2", GPT2),
    "mixtral": ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "gemma2": (
        "gemma2",
        {"sliding_window": WINDOW, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 8},
    ),
    "gpt_oss": (
        "gpt_oss",
        {
            "sliding_window": WINDOW,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        },
    ),
    "deepseek_v3": (
        "deepseek_v3",
        {
            "head_dim": 8,
            "num_key_value_heads": 4,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 8,
            "v_head_dim": 12,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "n_routed_experts": 4,
            "n_group": 1,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 16,
        },
    ),
}


def tiny_module(
    kind: str, overrides: dict[str, Any], dtype: torch.dtype = torch.float32, *, common: bool = True
) -> Any:
    """Build a random model of `kind` (transformers' model type), the same one each time."""
    base = COMMON if common and kind != "gpt2" else {}
    with quiet_transformers():
        config = AutoConfig.for_model(kind, **{**base, **overrides})
        transformers.set_seed(7)
        return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def served(name: str, dtype: torch.dtype = torch.float32) -> PagedModel:
    """Adopt the tiny model that SERVED names."""
    kind, overrides = SERVED[name]
    return adopt(tiny_module(kind, overrides, dtype))


def make_views(paged: PagedModel, pages: int, page_tokens: int) -> PoolViews:
    """A pool of zeros of `pages` pages and the padding page."""
    layout = paged.page_layout(page_tokens)
    return buffer_views(torch.zeros((pages + 1) * layout.page_bytes, dtype=torch.uint8), layout)


def plain(paged: PagedModel, tokens: list[int], implementation: str = "eager") -> torch.Tensor:
    """The module's own logits [tokens, vocab], without pages."""
    paged.module.set_attn_implementation(implementation)
    try:
        with torch.inference_mode():
            logits = paged.module(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    finally:
        paged.module.set_attn_implementation(IMPLEMENTATION)
    return logits.to(torch.float32, copy=True)


def run_paged(
    paged: PagedModel,
    views: PoolViews,
    prompts: list[list[int]],
    tables: list[list[int]],
    chunk: int,
    decode: int,
) -> list[torch.Tensor]:
    """Feed each sequence: chunks packed together, its last `decode` tokens by decode steps.

    Returns for each the logits of the last prompt token and of each decoded one.
    """
    rows: list[list[torch.Tensor]] = [[] for _ in prompts]
    heads = [prompt[: len(prompt) - decode] for prompt in prompts]
    for start in range(0, max(map(len, heads)), chunk):
        active = [index for index, head in enumerate(heads) if start < len(head)]
        chunks = [
            PrefillChunk(heads[i][start : start + chunk], start, tables[i], start + chunk >= len(heads[i]))
            for i in active
        ]
        logits = iter(paged.prefill(views, chunks))
        for index, part in zip(active, chunks, strict=True):
            if part.wants_logits:
                rows[index].append(next(logits))
    for step in range(decode):
        batch = [
            DecodeRow(prompt[len(head) + step], len(head) + step, table)
            for prompt, head, table in zip(prompts, heads, tables, strict=True)
        ]
        for index, row in enumerate(paged.decode(views, batch)):
            rows[index].append(row)
    return [torch.stack(row) for row in rows]
