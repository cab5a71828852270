"""A node's settings survive the file that carries them, and nothing else is taken for them."""

from pathlib import Path

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.serving.node_config import (
    DecodeConfig,
    NodeTimes,
    PrefillConfig,
    RouterConfig,
    decode_node_config,
    encode_node_config,
    read_node_config,
)

COMMON = {
    "run_dir": Path("run"),
    "secret_path": Path("run/secret"),
    "status_fd": 7,
    "parent_pid": 1,
    "router_control": "ipc://run/router.control",
    "model_dir": Path("model"),
    "context_tokens": 8192,
    "page_tokens": 16,
    "threads": 1,
    "cpus": (0,),
    "fence": "sealed",
    "transport": "shm",
    "times": NodeTimes(),
}
COMPUTE = {
    "dtype": "bfloat16",
    "device": "cpu",
    "pool_tokens": 99,
    "pool_bytes_max": None,
    "batch_size": 16,
    "data_host": "127.0.0.1",
}
CONFIGS = [
    PrefillConfig(
        node="prefill-0", **COMMON, **COMPUTE, chunk_tokens=1024, transfer_batch_bytes=8, prefix_cache=True
    ),
    DecodeConfig(
        node="decode-0", **{**COMMON, "cpus": None}, **COMPUTE, quarantine_share_max=0.5, faults=("x",)
    ),
    RouterConfig(
        node="router",
        **COMMON,
        host="127.0.0.1",
        port=0,
        model_id="m",
        prefill_nodes=("prefill-0",),
        decode_nodes=("decode-0",),
        api_keys=None,
        admin_key_file=None,
        body_bytes_max=1,
        tenant_requests_max=1,
        tenant_tokens_max=1,
        quarantine_share_max=0.5,
    ),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.node)
def test_it_comes_back_as_it_was(config, tmp_path):
    path = tmp_path / "node.json"
    path.write_bytes(encode_node_config(config))
    assert read_node_config(path) == config
    assert type(read_node_config(path)) is type(config)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"role":"mayor"}', b"\xff", b'{"role":"decode","node":1}'])
def test_anything_else_is_refused(data):
    with pytest.raises(OperatorError, match="cannot read"):
        decode_node_config(data)


def test_an_unknown_field_is_refused():
    data = encode_node_config(CONFIGS[1]).replace(b'"fence"', b'"fense"')
    with pytest.raises(OperatorError, match="fense"):
        decode_node_config(data)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(OperatorError, match="holds no settings"):
        read_node_config(tmp_path / "none.json")
