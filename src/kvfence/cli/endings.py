"""How a command ends: one clear message on standard error, and the exit code of whoever is at fault."""

import functools
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from kvfence.protocol.errors import KvfenceError, OperatorError

OPERATOR = 2
OURSELVES = 3
INTERRUPTED = 130


def ending_well(command: Callable[..., int]) -> Callable[..., None]:
    """Wrap a command that returns its exit code. Errors that kvfence does not know show their traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **flags: Any) -> None:
        try:
            code = command(*arguments, **flags)
        except KvfenceError as error:
            code = OPERATOR if isinstance(error, OperatorError) else OURSELVES
            _say(error, code)
        except KeyboardInterrupt:
            code = INTERRUPTED
        raise typer.Exit(code)

    return run


def _say(error: KvfenceError, code: int) -> None:
    whose = "" if code == OPERATOR else f" (ours, {type(error).__name__})"
    line = Text.assemble((f"kvfence: error{whose}: ", "bold red"), str(error))
    Console(stderr=True).print(line, soft_wrap=True)
