"""Which tests these are: slow, and none where nobody has made vLLM's environment."""

import os

import pytest

PYTHON = "KVFENCE_VLLM_PYTHON"
WITH_VLLM = [
    pytest.mark.slow,
    pytest.mark.timeout(3_000),
    pytest.mark.skipif(PYTHON not in os.environ, reason=f"{PYTHON} names no interpreter: make test-vllm"),
]
