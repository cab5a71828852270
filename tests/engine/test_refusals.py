"""Architectures that cannot run right are refused at load, each for its own reason."""

from types import SimpleNamespace

import pytest
from tests.engine.tiny_models import COMMON, SERVED, served, tiny_module

from kvfence.engine.model import adopt
from kvfence.engine.quiet import quiet_transformers
from kvfence.engine.refusals import RefusedModelError, refuse_config, refusing
from kvfence.engine.selftest import run_selftest
from kvfence.protocol.errors import OperatorError

OWN = {"vocab_size": 101, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LATENT = {
    "num_key_value_heads": 4, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 12, "kv_lora_rank": 16,
    "q_lora_rank": 16, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "moe_intermediate_size": 16, "index_n_heads": 2,
    "index_head_dim": 16, "index_topk": 4,
}  # fmt: skip
LINEAR = {
    "num_hidden_layers": 4, "num_experts": 4, "num_experts_per_tok": 2, "linear_num_key_heads": 2,
    "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8, "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}  # fmt: skip
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
JAMBA = {
    "num_hidden_layers": 4,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "num_experts": 2,
    "mamba_d_state": 4,
}
STATE = {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_chunk_size": 8}
REFUSED = {
    "stablelm": ("stablelm", {}, "drop the keyword arguments"),
    "nemotron": ("nemotron", {}, "drop the keyword arguments"),
    "bloom": ("bloom", {**OWN, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "attention code of its own"),
    "xglm": (
        "xglm",
        {**OWN, "d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4},
        "of its own",
    ),
    "mpt": ("mpt", {**OWN, "d_model": 32, "n_heads": 4, "n_layers": 2}, "attention code of its own"),
    "falcon": (
        "falcon",
        {**OWN, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
        "of its own",
    ),
    "gpt_neo": (
        "gpt_neo",
        {
            **OWN,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
        },
        "attention code of its own",
    ),
    "mamba": ("mamba", {**OWN, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, "or none"),
    "jamba": ("jamba", {**COMMON, **JAMBA, "use_mamba_kernels": False}, "2 of 4 layers use attention"),
    "qwen3_next": ("qwen3_next", LINEAR, "linear_attention"),
    "lfm2": ("lfm2", {"layer_types": ["conv", "full_attention", "conv"]}, "layers of type conv"),
    "minimax": ("minimax", {"num_local_experts": 4}, "linear_attention"),
    "falcon_h1": ("falcon_h1", STATE, "over pages its logits are off"),
    "glm_moe_dsa": ("glm_moe_dsa", LATENT, "indexed_attention"),
    "llama4": ("llama4_text", {"attention_chunk_size": 8, "num_local_experts": 2}, "chunked_attention"),
    "gemma3_bidirectional": ("gemma3_text", {"use_bidirectional_attention": True}, "bidirectional"),
    "phi3_longrope": (
        "phi3",
        {"original_max_position_embeddings": 64, "rope_parameters": LONGROPE},
        "'longrope'",
    ),
    "llama_dynamic": ("llama", {"rope_parameters": DYNAMIC}, "'dynamic'"),
}


def refuse(name):
    kind, overrides, _ = REFUSED[name]
    base = {} if "eos_token_id" in overrides else COMMON
    module = tiny_module(kind, {**base, **overrides}, common=False)
    with quiet_transformers():
        run_selftest(adopt(module))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_reason(name):
    with pytest.raises(RefusedModelError) as error:
        refuse(name)
    assert REFUSED[name][2] in error.value.reason
    assert isinstance(error.value, OperatorError)
    assert "cannot be served: " in str(error.value)


@pytest.mark.parametrize("name", SERVED)
def test_what_is_served_is_not_refused(name):
    assert run_selftest(served(name)) < 1e-4


def test_rope_is_found_in_nested_configs():
    nested = {"text_config": {"rope_parameters": {"full_attention": {"rope_type": "longrope"}}}}
    config = SimpleNamespace(to_dict=lambda: nested, architectures=None, model_type="nested")
    with pytest.raises(RefusedModelError, match="a model of type 'nested' cannot be served"):
        refuse_config(config)


def test_an_encoder_decoder_is_refused():
    config = SimpleNamespace(
        to_dict=lambda: {"is_encoder_decoder": True}, architectures=["T5"], model_type="t5"
    )
    with pytest.raises(RefusedModelError, match="T5 cannot be served: it is an encoder-decoder"):
        refuse_config(config)


def test_any_exception_is_a_refusal_with_its_words():
    config = SimpleNamespace(architectures=["Odd"], model_type="odd")
    with (
        pytest.raises(RefusedModelError, match="a first pass failed with KeyError: 'x'"),
        refusing(config, "a first pass"),
    ):
        raise KeyError("x")
