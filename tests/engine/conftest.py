"""The real model, loaded once a session for each dtype, one thread for tensors."""

import pytest
import torch

from kvfence.engine.checkpoint import read_module
from kvfence.engine.loading import resolve_model
from kvfence.engine.model import adopt
from kvfence.engine.quiet import quiet_transformers


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def smollm2_folder():
    return resolve_model()


@pytest.fixture(scope="session")
def smollm2(smollm2_folder):
    with quiet_transformers():
        return adopt(read_module(smollm2_folder.path, torch.float32))


@pytest.fixture(scope="session")
def smollm2_bf16(smollm2_folder):
    with quiet_transformers():
        return adopt(read_module(smollm2_folder.path, torch.bfloat16))
