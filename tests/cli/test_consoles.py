"""What is piped is not folded; what a terminal shows is as wide as the terminal."""

import io
import sys

from rich.table import Table

from kvfence.cli.consoles import output_console

WORDS = "word " * 100


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch, out):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", out)
    table = Table(box=None)
    table.add_column("heading")
    table.add_row(WORDS.strip())
    output_console().print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_table_in_a_pipe_is_whole(monkeypatch):
    assert shown(monkeypatch, io.StringIO()) == [" heading", f" {WORDS.strip()}"]


def test_a_table_in_a_terminal_fits(monkeypatch):
    lines = shown(monkeypatch, Terminal())
    assert len(lines) > 2
    assert max(map(len, lines)) < 100
