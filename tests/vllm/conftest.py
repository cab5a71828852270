"""What these tests need: another environment's interpreter, minutes, and two servers at most.

They run where KVFENCE_VLLM_PYTHON names that interpreter (`make test-vllm`), and are skipped everywhere else.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.vllm.instruments import keep
from tests.vllm.marks import PYTHON
from tests.vllm.proxy import Proxy
from tests.vllm.server import BLOCK_TOKENS, Vllm, free_port

CONTEXT = 2048
BLOCKS = 80  # 2,560 tokens: one context and a quarter, so that pages go from hand to hand
KEYS = {"KVFENCE_KEY_BLUE": "key-of-blue-4711", "KVFENCE_KEY_GREEN": "key-of-green-4712"}
TINY = ("--max-model-len", str(CONTEXT), "--num-gpu-blocks-override", str(BLOCKS), "--enable-prefix-caching")
POOL = BLOCKS * BLOCK_TOKENS


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter that has vLLM."""
    return str(Path(os.environ[PYTHON]).absolute())


@pytest.fixture(scope="module")
def home():
    """A short path: addresses of sockets stand in it."""
    path = Path(tempfile.mkdtemp(prefix="kvf-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def kept(home):
    """Keep a run for the document, under words in place of addresses and paths."""

    def keep_it(name, ran, said=None, **names):
        keep(name, ran, {str(home): "RUN", **{value: word for word, value in names.items()}}, said or {})

    return keep_it


@pytest.fixture(scope="module")
def single(python, home):
    """One healthy server with two keys and a tiny pool."""
    server = Vllm(python, home, "server", *TINY, "--api-key", *KEYS.values(), key=next(iter(KEYS.values())))
    try:
        yield server.wait_ready()
    finally:
        server.stop()


@pytest.fixture(scope="module")
def pair(python, home):
    """Prefill, decode, and the proxy before them: (prefill, decode, proxy)."""
    nodes = []
    try:
        nodes.extend(
            Vllm(python, home, role, *TINY, *_transfer(role), env=_sides())
            for role in ("producer", "consumer")
        )
        for node in nodes:
            node.wait_ready()
        proxy = Proxy(nodes[0].url, nodes[1].url)
        try:
            yield *nodes, proxy
        finally:
            proxy.stop()
    finally:
        for node in nodes:
            node.stop()


def _transfer(role):
    config = (
        f'{{"kv_connector":"NixlConnector","kv_role":"kv_{role}","kv_buffer_device":"cpu",'
        '"kv_load_failure_policy":"fail"}'
    )
    return "--kv-transfer-config", config


def _sides():
    return {
        "UCX_TLS": "tcp,shm,self",
        "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
        "VLLM_NIXL_SIDE_CHANNEL_PORT": str(free_port()),
    }
