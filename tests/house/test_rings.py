"""The rings hold, and the check of them can fail."""

import subprocess
import sys

import pytest
from tests.house.rings import RINGS, ring_faults
from tests.house.source import modules, sample

PACKAGES = {module.package for module in modules()}
HEAVY = ("torch", "transformers", "numpy", "fastapi", "zmq", "uvicorn", "structlog", "tokenizers")


def test_imports_point_inward():
    assert [fault for module in modules() for fault in ring_faults(module, PACKAGES)] == []


def test_the_table_points_inward_itself():
    """No two rings may import each other."""
    for ring, inner in RINGS.items():
        for other in inner:
            assert ring not in RINGS[other], f"{ring} and {other} would import each other"


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        ("protocol/x.py", "import kvfence.kv.pool", "protocol imports kv"),
        ("kv/x.py", "def f():\n    from kvfence.serving import config", "kv imports serving"),
        ("kv/x.py", "from kvfence import engine", "kv imports engine"),
        ("kv/x.py", "import torch", "does not use torch"),
        ("protocol/x.py", "import msgspec", "does not use msgspec"),
        ("protocol/x.py", "import time", "reads no clock"),
        ("protocol/x.py", "from random import choice", "no random number"),
        ("transport/x.py", "from . import base", "in full"),
        ("cli/x.py", "import torch", "does not use torch"),
        ("attic/x.py", "import os", "no row"),
    ],
)
def test_an_outward_import_is_found(place, text, said):
    (fault,) = ring_faults(sample(text, place), PACKAGES)
    assert said in fault


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("protocol/x.py", "from collections import deque\nfrom kvfence.protocol.words import Peer"),
        ("kv/x.py", "import os, numpy\nfrom kvfence.protocol import words"),
        ("cli/x.py", "from kvfence import __version__\nfrom kvfence.serving.config import ServeConfig"),
    ],
)
def test_an_inward_import_is_none(place, text):
    assert list(ring_faults(sample(text, place), PACKAGES)) == []


def loaded_by(statement: str) -> list[str]:
    words = f"import sys\n{statement}\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    return eval(done.stdout)


def test_the_command_line_loads_nothing_heavy():
    assert loaded_by("import kvfence.cli") == []


def test_what_is_loaded_is_seen():
    assert loaded_by("import kvfence.kv.pool") == ["numpy"]


def test_a_node_in_kv_or_transport_loads_no_torch():
    assert "torch" not in loaded_by("import kvfence.kv, kvfence.transport, kvfence.protocol, kvfence.faults")
