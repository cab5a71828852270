"""The terminal: lines where there is no terminal, a live view where there is one."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from kvfence.replay.acts import Act, Leak, Played
from kvfence.replay.stage import Stage
from tests.replay.samples import LEAKING_TRIAL, PLAY, played


def stage(*, terminal=False):
    output = io.StringIO()
    ticks = iter(range(1000))
    console = Console(file=output, width=100, force_terminal=terminal, color_system=None, highlight=False)
    return Stage(console, clock=lambda: float(next(ticks))), output


def test_steps_are_lines_where_there_is_no_terminal_and_details_are_left_out():
    made, output = stage()
    with made.act(Act.LEAK) as say:
        say("a deployment starts")
        say("decode-0: loading", is_detail=True)
        say("tenant B asks")
    lines = output.getvalue().splitlines()
    assert lines[0].startswith("Act 2: The leak ")
    assert lines[1:] == ["  a deployment starts", "  tenant B asks"]


def test_steps_are_drawn_in_place_on_a_terminal():
    made, output = stage(terminal=True)
    with made.act(Act.LEAK) as say:
        say("a deployment starts")
        say("decode-0: loading", is_detail=True)
        say("tenant B asks")
    seen = output.getvalue()
    assert "✓ a deployment starts (" in seen
    assert "tenant B asks …" in seen
    assert "\x1b[" in seen


def test_an_act_that_fails_leaves_the_terminal_usable():
    made, output = stage(terminal=True)
    with pytest.raises(KeyboardInterrupt), made.act(Act.FIX):
        raise KeyboardInterrupt
    hides, shows = "\x1b[?25l", "\x1b[?25h"
    assert output.getvalue().rfind(shows) > output.getvalue().rfind(hides) >= 0


def test_each_act_ends_with_its_verdict():
    made, output = stage()
    made.show(played(), Act.FIX)
    made.show(Played(PLAY, leak=Leak(PLAY, replace(LEAKING_TRIAL, sent_tokens=61))), Act.LEAK)
    assert "act 4: shown" in output.getvalue()
    assert "act 2: NOT SHOWN" in output.getvalue()


def test_the_end_names_what_was_missed_and_the_report():
    made, output = stage()
    made.close(Played(PLAY, leak=Leak(PLAY, replace(LEAKING_TRIAL, sent_tokens=61))), Path("x.html"))
    made.close(played(), None)
    assert output.getvalue() == "act 2 did not show what it says.\nReport: x.html\n"
