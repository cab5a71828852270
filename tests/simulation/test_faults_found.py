"""The table of how many seeds each fault takes; a fault that is not found fails it."""

import pytest

from kvfence.simulation.faults_found import main

FAST = "unscrubbed-reuse/dirty-added-page"


def test_a_fault_that_is_found_is_in_the_table(capsys):
    assert main(["--seeds", "30", "--wanted", "2", FAST]) == 0
    assert FAST in capsys.readouterr().out


def test_one_that_is_not_found_fails(capsys):
    assert main(["--seeds", "1", "--wanted", "1", "transfer-outlives-pages/free-on-loss"]) == 1
    assert "never" in capsys.readouterr().out


def test_an_unknown_name_is_said(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["no-such/fault"])
    assert ended.value.code == 2
    assert "no-such/fault" in capsys.readouterr().err
