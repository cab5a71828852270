"""What all tests of the seam want: quiet, and one thread."""

import pytest
import structlog
import torch


@pytest.fixture(autouse=True)
def _quiet_logs():
    """Nodes have much to say about such days."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _one_thread():
    """The tensors are tiny."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
