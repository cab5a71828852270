"""`kvfence watch`: what is wrong with flags and stored states, before the first request."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from kvfence.check.watch_state import WatchState
from kvfence.cli.app import app
from kvfence.cli.watch_run import address_of, stored_state
from kvfence.protocol.errors import OperatorError


def test_its_help_reads_in_one_screen():
    result = CliRunner().invoke(app, ["watch", "--help"], env={"COLUMNS": "100", "TERM": "dumb"})
    assert result.exit_code == 0
    assert len(result.output.splitlines()) <= 40


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name one URL"),
        (("http://h", "--targets", "x.toml"), "and not both"),
        (("http://h", "--listen", "nowhere"), "HOST:PORT"),
        (("--targets", "no-such-profile.toml"), "no-such-profile"),
        (("--targets", "x.toml", "--model", "m"), "leave out --key-env"),
    ],
)
def test_wrong_flags_say_what_to_do(words: tuple[str, ...], said: str):
    result = CliRunner().invoke(app, ["watch", *words], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 2, result.output
    assert said in result.output


@pytest.mark.parametrize(
    ("words", "parts"),
    [("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:80", ("::1", 80)), ("localhost:0", ("localhost", 0))],
)
def test_an_address_is_read(words: str, parts: tuple[str, int]):
    assert address_of(words) == parts


@pytest.mark.parametrize("words", ["", ":80", "h:", "h:x", "h:70000", "9464"])
def test_a_wrong_address_says_what_to_do(words: str):
    with pytest.raises(OperatorError, match="HOST:PORT"):
        address_of(words)


def test_a_state_is_new_where_there_is_no_file(tmp_path: Path):
    assert stored_state(None, "t", 0.01) == stored_state(tmp_path / "none", "t", 0.01)
    assert stored_state(None, "t", 0.05) == WatchState(target="t", alpha=0.05)


def test_a_stored_state_is_gone_on_from(tmp_path: Path):
    state = WatchState(target="t", requests=9)
    (tmp_path / "state").write_bytes(msgspec.json.encode(state))
    assert stored_state(tmp_path / "state", "t", 0.01) == state


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (WatchState(target="other"), "name another file"),
        (WatchState(target="t", alpha=0.05), "name another file"),
        (WatchState(target="t", format=2), "newer kvfence"),
        (WatchState(target="t", stopped="a leak"), "was stopped"),
    ],
)
def test_a_state_of_another_watch_is_refused(stored: WatchState, said: str, tmp_path: Path):
    path = tmp_path / "state"
    path.write_bytes(msgspec.json.encode(stored))
    with pytest.raises(OperatorError, match=said):
        stored_state(path, "t", 0.01)


def test_a_file_that_is_no_state_is_refused(tmp_path: Path):
    (tmp_path / "state").write_text("nothing")
    with pytest.raises(OperatorError, match="no state of a watch"):
        stored_state(tmp_path / "state", "t", 0.01)
