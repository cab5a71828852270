"""`kvfence replay`: flags in, settings out."""

import re

import pytest
from typer.testing import CliRunner

import kvfence.replay
from kvfence.cli.app import app
from kvfence.replay import INCIDENT, Act, ReplaySettings, Secret, Sizes


@pytest.fixture
def played(monkeypatch):
    """What would be played; nothing is started. The command ends with 1, to see that it is passed on."""
    settings = []
    monkeypatch.setattr(
        kvfence.replay, "replay", lambda given, environment, console: settings.append(given) or 1
    )
    return settings


def invoke(*words):
    return CliRunner().invoke(app, ["replay", *words], env={"COLUMNS": "200", "TERM": "dumb"})


def plain(words):
    return re.sub(r"\x1b\[[0-9;]*m", "", words)


def test_without_flags_all_acts_are_played_and_a_report_is_written_here(played):
    assert invoke().exit_code == 1
    (settings,) = played
    assert settings == ReplaySettings(html=settings.html)
    assert (settings.acts, settings.fault, str(settings.html)) == (
        tuple(Act),
        INCIDENT,
        "kvfence-replay.html",
    )


def test_flags_reach_the_settings(played, tmp_path):
    path = tmp_path / "r.html"
    invoke("--act", "4", "--act", "2", "--act", "2", "--secret", "Bumblebee saxophone", "--html", str(path))
    (settings,) = played
    assert settings.acts == (Act.LEAK, Act.FIX)
    assert settings.secret == Secret(("bumblebee", "saxophone"))
    assert settings.html == path


def test_a_fault_is_played_by_acts_2_and_3_and_no_report_can_be_wanted(played):
    invoke("--fault", "rejected-continues/split-state", "--no-html")
    (settings,) = played
    assert (settings.acts, settings.fault) == ((Act.LEAK, Act.FENCE), "rejected-continues/split-state")
    assert settings.html is None


def test_what_if_plays_act_1(played):
    invoke("--pool-tokens", "500000", "--context-tokens", "600000", "--page-tokens", "32")
    invoke("--pool-tokens", "700000", "--act", "1", "--act", "4")
    assert [settings.acts for settings in played] == [(Act.NUMBERS,), (Act.NUMBERS, Act.FIX)]
    assert played[0].sizes == Sizes(600_000, 500_000, 32)
    assert played[1].sizes == Sizes(pool_tokens=700_000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--act", "5"], "--act"),
        (["--pool-tokens", "9", "--act", "2"], "are for act 1"),
        (["--pool-tokens", "3"], "no whole page"),
        (["--html", "x.html", "--no-html"], "contradict"),
        (["--secret", "a b"], "could not be told"),
        (["--html", "nowhere/x.html"], "no report can be written"),
    ],
)
def test_usage_errors(played, words, said):
    result = invoke(*words)
    assert result.exit_code == 2
    assert said in plain(result.output)
    assert played == []


def test_a_fault_that_the_engine_cannot_show_is_sent_to_the_simulator():
    result = invoke("--fault", "padding-touches-live/page-zero", "--no-html")
    assert result.exit_code == 2
    assert "kvfence simulate --fault padding-touches-live/page-zero" in plain(result.output)


def test_act_1_for_real(tmp_path):
    path = tmp_path / "r.html"
    result = invoke("--act", "1", "--html", str(path))
    assert result.exit_code == 0
    for figure in ("1,048,576", "681,280", "64.97 %", "367,296", "1.95", "99.2 %", "A1, A2, A3, A4, A5, A6"):
        assert figure in result.output
    assert path.is_file()
