"""The pytest plugin, in a pytest of its own against a fake server on a real socket."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.check.fake.clock import Clock
from tests.check.fake.faults import setup_for
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.fake.threaded import served

from kvfence.check import profiles, pytest_plugin
from kvfence.check.scenario import Hazard
from kvfence.report import Severity

FAST = Clock(a_s=0.001, b_s=0.0, step_s=0.001)


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    off = ["-p", "no:cacheprovider", "-p", "no:looptime_plugin", "-p", "no:looptime_chronometers"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", *off, "-p", "no:looptime_timeproxies", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_options_name_what_there_is():
    assert set(pytest_plugin.PROFILES) == set(profiles.PROFILES)
    assert set(pytest_plugin.HAZARDS) == {hazard.value for hazard in Hazard} - {"ordinary"}
    assert tuple(severity.value for severity in Severity) == pytest_plugin.SEVERITIES


def test_a_healthy_server_passes(tmp_path: Path):
    with served(FakeServer(Setup(clock=FAST))) as url:
        ran = run_pytest(tmp_path, "--kvfence-url", url, "-k", "one-word", "--kvfence-seed", "7")
    assert ran.returncode == 0, ran.stdout
    assert "PASSED" in ran.stdout
    assert "no evidence in" in ran.stdout


def test_what_is_found_fails_with_its_words_and_no_traceback(tmp_path: Path):
    with served(FakeServer(setup_for("row-mixup/shifted-tables"))) as url:
        ran = run_pytest(tmp_path, "--kvfence-url", url, "-k", "one-word", "--kvfence-seed", "7")
    assert ran.returncode == 1, ran.stdout
    assert "kvfence explain KVF2" in ran.stdout
    assert "Traceback" not in ran.stdout


def test_a_target_that_cannot_be_reached_fails_with_its_words_and_no_traceback(tmp_path: Path):
    ran = run_pytest(tmp_path, "--kvfence-url", "http://127.0.0.1:1", "-k", "one-word or boundary")
    assert ran.returncode == 1, ran.stdout
    assert ran.stdout.count("nothing was tested: http://127.0.0.1:1") >= 2
    assert "probing.py" not in ran.stdout


def test_without_a_url_there_is_no_test(tmp_path: Path):
    assert run_pytest(tmp_path).returncode == pytest.ExitCode.NO_TESTS_COLLECTED
