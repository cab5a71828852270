"""Samples of what each engine says, in the forms that are seen in the field, with numbers of our own."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Own:
    """Pages as (path, what was said), logs as lines; only this engine says these."""

    pages: tuple = field(default=())
    logs: tuple = field(default=())


def models(owner, **card):
    return {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner, **card}]}


SGLANG_INFO = {
    "version": "0.5.23",
    "disaggregation_mode": "decode",
    "disaggregation_transfer_backend": "mooncake",
    "disaggregation_enable_kv_checksum": False,
    "kv_canary": "none",
    "allow_auto_truncate": False,
    "max_total_num_tokens": 3000,
    "max_req_input_len": 2042,
    "max_total_tokens": None,
    "context_length": 2048,
    "page_size": 16,
    "dp_size": 2,
    "tp_size": 1,
    "internal_states": [
        {"memory_usage": {"token_capacity": 3000}},
        {"memory_usage": {"token_capacity": 2944}},
    ],
}
SGLANG_METRICS = """\
# HELP sglang:max_total_num_tokens Maximum total number of tokens in the KV cache pool.
# TYPE sglang:max_total_num_tokens gauge
sglang:max_total_num_tokens{engine_type="prefill",model_name="m",dp_rank="0"} 71000.0
sglang:max_total_num_tokens{engine_type="prefill",model_name="m",dp_rank="1"} 70912.0
sglang:context_len{engine_type="prefill",model_name="m"} 65536.0
sglang:page_size{engine_type="prefill",model_name="m"} 64.0
"""
SGLANG_FINAL = (
    "[2026-06-29 11:16:45 TP0] max_total_num_tokens=1086464, chunked_prefill_size=8192, "
    "max_prefill_tokens=16384, max_running_requests=33, context_len=128000, available_gpu_mem=17.22 GB"
)
VLLM_METRICS = (
    'vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0",'
    'kv_cache_max_concurrency="5.6875",kv_cache_size_tokens="46592",num_gpu_blocks="2912",'
    'prefix_caching_hash_algo="sha256"} 1.0\n'
)
VLLM_LOG = (
    "(APIServer pid=7) INFO 04-03 10:00:00 [api_server.py:1346] vLLM API server version 0.19.0",
    "(EngineCore_DP0 pid=9) INFO 04-03 10:00:09 [kv_cache_utils.py:1307] GPU KV cache size: 46,592 tokens",
    "(EngineCore_DP0 pid=9) INFO 04-03 [kv.py:1312] Maximum concurrency for 8,192 tokens per request: 5.69x",
)
KVFENCE_INFO = {
    "version": "0.1.0",
    "model": "m",
    "context_tokens": 2048,
    "fence": "sealed",
    "transport": "shm",
    "unsafe_faults": [],
    "unsafe_without": [],
    "largest_request_tokens": 2048,
    "uptime_seconds": 3.5,
    "nodes": [
        {
            "name": f"{role}-0",
            "role": role,
            "incarnation": 7,
            "pool_tokens": 4096,
            "draining": False,
            "version": "0.1.0",
            "context_tokens": 2048,
            "largest_request_tokens": 2048,
            "page_tokens": 16,
            "fence": "sealed",
            "unsafe_faults": None,
        }
        for role in ("prefill", "decode")
    ],
}
KVFENCE_METRICS = 'kvfence_pool_tokens{node="decode-0",role="decode"} 4096.0\n'
LLAMACPP_PROPS = {
    "default_generation_settings": {"id": 0, "n_ctx": 2048, "params": {"seed": 1}},
    "total_slots": 4,
    "model_path": "m.gguf",
    "build_info": "b9265-0a1b2c3d",
}
LLAMACPP_LOG = (
    "build: 9265 (0a1b2c3d) with cc for x86_64-linux-gnu",
    "llama_context: n_seq_max     = 4",
    "llama_context: n_ctx         = 2048",
    "llama_context: n_ctx_seq     = 2048",
    "llama_context: kv_unified    = true",
    "llama_kv_cache: size =  224.00 MiB (  2048 cells,  28 layers,  4/1 seqs), K (f16):  112.00 MiB",
    "slot   load_model: id  0 | task -1 | new slot, n_ctx = 2048",
    "slot   load_model: id  3 | task -1 | new slot, n_ctx = 2048",
)
TRTLLM_LOG = (
    "[TensorRT-LLM] TensorRT-LLM version: 0.21.0",
    "[TensorRT-LLM][INFO] TRTGptModel maxSequenceLen: 32768",
    "[TensorRT-LLM][INFO] Using 65536 tokens in paged KV cache.",
)
TRTLLM_METRICS = """\
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 2448
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
"""
LMDEPLOY_LOG = (
    "[TM][INFO] [BlockManager] block_size = 0.844 MB",
    "[TM][INFO] [BlockManager] max_block_count = 1000",
    "[TM][WARNING] No enough blocks for `session_len` (131072), `session_len` truncated to 64000.",
)
TGI_INFO = {
    "model_id": "m",
    "model_sha": "0a",
    "max_total_tokens": 8192,
    "max_input_tokens": 8191,
    "max_batch_total_tokens": 43520,
    "version": "3.0.1",
}
TGI_LOG = [
    "2024-09-01T10:00:00Z  INFO text_generation_launcher: Args { max_input_length: 4096, max_total_tokens: 8192, max_batch_total_tokens: 16000, max_waiting_tokens: 20 }",
    "2024-09-01T10:01:00Z  INFO text_generation_router: router/src/main.rs:371: Setting max batch total tokens to 43520",
]
OLLAMA_PS = {
    "models": [
        {"name": "a:14b", "digest": "0a", "size_vram": 1, "context_length": 8192},
        {"name": "b:8b", "digest": "0b", "size_vram": 1, "context_length": 4096},
    ]
}
OLLAMA_CLI = (
    "NAME         ID              SIZE      PROCESSOR    CONTEXT    UNTIL",
    "a:14b    0a1b2c3d4e5f    9.6 GB    100% GPU     4096       4 minutes from now",
    "    context length      40960",
)

SAMPLES = {
    "sglang": Own(
        (
            ("/server_info", SGLANG_INFO),
            ("/metrics", SGLANG_METRICS),
            ("/v1/models", models("sglang", max_model_len=2048)),
        ),
        ((SGLANG_FINAL,), ("[2026-06-29 11:16:45] KV Cache is allocated. #tokens: 2000, K size: 1.00 GB",)),
    ),
    "vllm": Own(
        (
            ("/metrics", VLLM_METRICS),
            ("/v1/models", models("vllm", max_model_len=8192, root="m")),
            ("/server_info", {"vllm_config": {"model_config": {"max_model_len": 8192}}}),
        ),
        (VLLM_LOG,),
    ),
    "kvfence": Own(
        (
            ("/server_info", KVFENCE_INFO),
            ("/metrics", KVFENCE_METRICS),
            ("/v1/models", models("kvfence", max_model_len=2048)),
        ),
        (("kvfence 0.1.0  serves m",),),
    ),
    "llama.cpp": Own(
        (
            ("/props", LLAMACPP_PROPS),
            ("/v1/models", models("llamacpp", meta={"n_ctx_train": 32768})),
            ("/metrics", "llamacpp:requests_processing 0\n"),
        ),
        (LLAMACPP_LOG,),
    ),
    "tensorrt-llm": Own(
        (
            ("/metrics", TRTLLM_METRICS),
            ("/v1/models", models("tensorrt_llm")),
            ("/metrics", [{"iter": 1, "kvCacheStats": {"maxNumBlocks": 101, "tokensPerBlock": 32}}]),
        ),
        (TRTLLM_LOG,),
    ),
    "lmdeploy": Own(
        (("/v1/models", models("lmdeploy")), ("/metrics", 'lmdeploy:num_requests_total{model="m"} 0\n')),
        (LMDEPLOY_LOG,),
    ),
    "tgi": Own((("/info", TGI_INFO), ("/metrics", "tgi_queue_size 0\n")), (TGI_LOG,)),
    "ollama": Own((("/api/ps", OLLAMA_PS), ("/api/version", {"version": "0.32.9"})), (OLLAMA_CLI,)),
}
