"""The console that an instrument writes to: as wide as the terminal; in a pipe or file, nothing is folded.

Rules it keeps: a line that `grep` or another program reads is whole, whatever its length.
"""

from rich.console import Console

from kvfence.report.convert import COLUMNS_UNFOLDED


def output_console() -> Console:
    """Return a console on standard output. Nothing is highlighted that has no style of its own."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=COLUMNS_UNFOLDED)
