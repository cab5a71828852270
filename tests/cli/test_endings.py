"""How a command ends: the exit code of whoever is at fault, and one clear message."""

import subprocess
import sys

import pytest
import typer

from kvfence.cli.endings import INTERRUPTED, OPERATOR, OURSELVES, ending_well
from kvfence.protocol.errors import InvariantError, OperatorError, PeerError


def ended(error=None, code=0):
    """Run a command that ends like this; return its exit code."""

    def command():
        if error is not None:
            raise error
        return code

    with pytest.raises(typer.Exit) as exit_:
        ending_well(command)()
    return exit_.value.exit_code


@pytest.mark.parametrize("code", [0, INTERRUPTED])
def test_a_command_ends_by_its_own_code_and_says_nothing(capsys, code):
    assert ended(code=code) == code
    assert capsys.readouterr() == ("", "")


def test_what_the_operator_must_mend_is_said_on_standard_error_without_a_traceback(capsys):
    assert ended(OperatorError("no room; free some")) == OPERATOR
    output, errors = capsys.readouterr()
    assert (output, errors) == ("", "kvfence: error: no room; free some\n")


@pytest.mark.parametrize("error", [InvariantError("it broke"), PeerError("it lied")])
def test_what_is_ours_is_said_to_be_ours(capsys, error):
    assert ended(error) == OURSELVES
    assert f"error (ours, {type(error).__name__}): {error}" in capsys.readouterr().err


def test_ctrl_c_is_an_end_of_its_own():
    assert ended(KeyboardInterrupt()) == INTERRUPTED


def test_an_error_that_nobody_foresaw_keeps_its_traceback_and_is_no_finding(capsys):
    assert ended(LookupError("a bug")) == OURSELVES
    said = capsys.readouterr().err
    assert "Traceback" in said and "LookupError: a bug" in said


@pytest.mark.parametrize("words", [["faults", "--json"], ["faults"], ["verify", "--list"]])
def test_a_reader_that_goes_is_no_finding_either(words):
    command = [sys.executable, "-m", "kvfence", *words]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    assert program.wait() == INTERRUPTED


def test_a_message_in_brackets_is_text_and_not_markup(capsys):
    ended(OperatorError("[bold]--port[/bold] is taken"))
    assert "[bold]--port[/bold] is taken" in capsys.readouterr().err


def test_a_part_that_is_not_installed_is_named_with_what_brings_it(capsys):
    assert ended(ModuleNotFoundError("No module named 'zmq'", name="zmq.asyncio")) == OPERATOR
    assert "needs zmq.asyncio" in (said := capsys.readouterr().err) and "kvfence[serve]" in said


def test_a_module_of_our_own_that_is_missing_is_a_defect(capsys):
    assert ended(ModuleNotFoundError("No module named 'kvfence.x'", name="kvfence.x")) == OURSELVES
    assert "Traceback" in capsys.readouterr().err
