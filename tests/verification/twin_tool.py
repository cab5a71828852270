"""Where the twin's model is, and the mark of tests that need Java and TLC."""

from pathlib import Path

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.verification.twin import find_tool

MODEL_FOLDER = Path(__file__).resolve().parents[2] / "twin"


def missing_tool() -> str | None:
    """Say what is missing, or None."""
    try:
        find_tool()
    except OperatorError as error:
        return str(error)
    return None


needs_the_tool = pytest.mark.skipif(missing_tool() is not None, reason=missing_tool() or "it is there")
