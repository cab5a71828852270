"""Which decisions a core is given: the correct ones, unless they were wanted otherwise."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kvfence
from kvfence.kv import FenceLevel
from kvfence.protocol import Decisions, Expectation
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import IntegrityReason, LeaseId, Manifest, Peer
from kvfence.serving.node_decisions import node_decisions

LEASE, WRITER = LeaseId(7, 1), Peer("prefill-0", 5)
SHORT = Manifest(LEASE, WRITER, 1, 1, b"h", 9, 1)
EXPECTED = Expectation(LEASE, WRITER, tokens=100, pages=7, token_hash=b"h")
SPLIT, ADMISSION = "rejected-continues/split-state", "rejected-continues/admission-unchecked"


@pytest.mark.parametrize("level", [level for level in FenceLevel if level is not FenceLevel.OFF])
def test_without_a_fault_the_decisions_are_the_protocols_own(level):
    assert type(node_decisions(level, ())) is Decisions


def test_with_the_fence_off_a_manifest_is_believed_and_nothing_else_changes():
    off = node_decisions(FenceLevel.OFF, ())
    assert off.manifest_fault(SHORT, EXPECTED) is None
    assert Decisions().manifest_fault(SHORT, EXPECTED) is IntegrityReason.MANIFEST_TOKENS
    assert not off.admits(11, 10)


def test_faults_come_in_by_name_together_and_under_any_level():
    both = node_decisions(FenceLevel.SEALED, (SPLIT, ADMISSION))
    assert both.fits_node(11, 10)
    assert both.fit_prompt((1, 2, 3), 2) == (1,)
    assert both.manifest_fault(SHORT, EXPECTED) is IntegrityReason.MANIFEST_TOKENS
    assert node_decisions(FenceLevel.OFF, (SPLIT,)).fit_prompt((1, 2, 3), 2) == (1,)


def test_layers_are_left_out_by_name():
    without = node_decisions(FenceLevel.SEALED, (), ("manifest", "seal"))
    assert without.manifest_fault(SHORT, EXPECTED) is None
    assert not without.verifies_seals()
    assert without.guards_steps()
    with pytest.raises(OperatorError, match="did you mean seal"):
        node_decisions(FenceLevel.SEALED, (), ("sael",))


def test_an_unknown_fault_is_an_error():
    with pytest.raises(OperatorError, match="did you mean"):
        node_decisions(FenceLevel.SEALED, ("rejected-continues/split-stat",))


def test_the_faults_are_not_even_imported_unless_one_is_named():
    program = (
        "import sys\n"
        "from kvfence.kv import FenceLevel\n"
        "from kvfence.serving.node_decisions import node_decisions\n"
        "node_decisions(FenceLevel.OFF, ())\n"
        "assert not any(name.startswith('kvfence.faults') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_file_on_the_serving_path_imports_the_faults_when_it_is_loaded():
    package = Path(kvfence.__file__).parent
    folders = ("protocol", "kv", "transport", "engine", "serving")
    for path in (
        *(file for name in folders for file in package.glob(f"{name}/*.py")),
        package / "cli/serve.py",
    ):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "kvfence.faults" not in ast.unparse(node), path
