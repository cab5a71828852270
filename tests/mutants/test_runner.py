"""The rig is alive: what must be killed is, what changes nothing survives, and a hang has an end.

The killers are a few lines in a folder of their own; at the end the real ones try a fixed sample of the real
mutants, which is this score's share of a quick test run. `make mutants` tries them all.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.killers import FOLDER, NO_KILLERS, explorer_kills, may_kill
from tests.mutants.mutations import all_mutations, applied, chosen

ROOT = Path(__file__).resolve().parents[2]
ROW = "decode:RESERVED/ABORT"
KILLERS = """
from kvfence.protocol import DECODE, DecodeFact, DecodeState

def row():
    return DECODE.find(DecodeState.RESERVED, DecodeFact.ABORT)

def test_that_never_ends():
    while row().action == "silenced":
        pass

def test_that_notices():
    assert row().next_state is not DecodeState.VERIFYING

def test_that_eats_memory():
    kept = []
    while row().action == "fail_closed":
        kept.append(bytes(1 << 24))

def test_of_something_else():
    assert DecodeState.RUNNING
"""


def drive(folder, *names):
    """Verdicts by mutant: fate, killer, tests run."""
    command = [sys.executable, "-m", "tests.mutants.drive", str(folder), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killers")
    (folder / "test_killers.py").write_text(KILLERS)
    kinds = ("same", "to VERIFYING", "to ABSENT", "to RUNNING", "to WAITING", "silent", "drop")
    return drive(folder, *(f"{ROW} {kind}" for kind in kinds), "router:QUEUED/ROOM drop")


def test_what_changes_nothing_survives_every_test_that_takes_the_row(verdicts):
    fate, killer, tests_run = verdicts[f"{ROW} same"]
    assert (fate, killer, tests_run) == ("survived", "", 3)


def test_what_a_test_notices_is_killed_by_it(verdicts):
    fate, killer, _ = verdicts[f"{ROW} to VERIFYING"]
    assert fate == "killed"
    assert killer.endswith("test_that_notices (call)")


def test_a_hang_has_an_end_and_is_a_kill(verdicts):
    assert verdicts[f"{ROW} silent"][0] == "hung"


def test_what_eats_memory_is_killed(verdicts):
    fate, killer, _ = verdicts[f"{ROW} drop"]
    assert fate == "killed"
    assert killer.endswith("test_that_eats_memory (call)")


def test_what_no_test_takes_survives_and_says_so(verdicts):
    assert verdicts["router:QUEUED/ROOM drop"] == ["survived", "", 0]


def test_the_second_killer_is_asked_about_survivors(verdicts):
    assert verdicts[f"{ROW} to RUNNING"] == ["killed", "the second killer", 3]
    assert verdicts[f"{ROW} to WAITING"] == ["survived", "", 3], "it could not tell"
    assert verdicts[f"{ROW} to ABSENT"] == ["survived", "", 3], "it found nothing"


def test_nothing_is_judged_when_the_unmutated_run_fails(tmp_path):
    (tmp_path / "test_killers.py").write_text("def test_broken():\n    assert not 'well'\n")
    assert "test_broken" in drive(tmp_path, f"{ROW} drop")["error"]
    (tmp_path / "test_killers.py").write_text("def not_a_test():\n    pass\n")
    assert "could not be collected" in drive(tmp_path, f"{ROW} drop")["error"]


def test_who_compares_with_a_copy_is_no_killer():
    assert not may_kill(f"{FOLDER}/test_docs.py::test_the_page_is_up_to_date")
    assert not may_kill(f"{FOLDER}/test_rows.py")
    assert not may_kill(f"{FOLDER}/test_words.py::test_a_missing_row_fails_closed_but_in_closing")
    assert may_kill(f"{FOLDER}/test_words.py::test_token_hash_is_sha256_of_little_endian_u32")
    assert may_kill(f"{FOLDER}/test_decode.py::test_good_path_brings_everything_home")
    for name in NO_KILLERS:
        file, _, test = name.partition("::")
        text = (ROOT / FOLDER / file).read_text()
        assert not test or f"def {test}(" in text, f"{name} is not there any more"


def test_the_explorer_is_the_second_killer():
    mutations = all_mutations()
    with applied(chosen(mutations, [f"{ROW} silent"])[0]):
        assert explorer_kills(mutations[0])
    assert not explorer_kills(mutations[0]), "every row is right again"


def test_a_sample_of_the_mutants_is_killed_by_the_protocols_tests():
    command = [sys.executable, "-m", "tests.mutants", "--sample"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 survive: 100.0 %\n")


def test_a_name_that_is_none_is_a_usage_error():
    command = [sys.executable, "-m", "tests.mutants", "--only", "decode:RESERVED/NOTHING"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "there is no mutation 'decode:RESERVED/NOTHING'" in done.stderr
