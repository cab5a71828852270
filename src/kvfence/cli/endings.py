"""How a command ends: one clear message on standard error, and the exit code of whoever is at fault."""

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from kvfence.protocol.errors import KvfenceError, OperatorError

OPERATOR = 2
OURSELVES = 3
INTERRUPTED = 130

_WHAT_IS_MISSING = (
    "this command needs {}, which is not installed: pip install 'kvfence[serve]' brings all it needs"
)


def _is_ours(error: ModuleNotFoundError) -> bool:
    """A module of our own that is not there is a defect, not a part to install."""
    return error.name is None or error.name.partition(".")[0] == "kvfence"


def ending_well(command: Callable[..., int]) -> Callable[..., None]:
    """Wrap a command that returns its exit code.

    Errors that kvfence does not know show their traceback, and end with the code of a fault of ours: 1 is for
    what a command found.
    """

    @functools.wraps(command)
    def run(*arguments: Any, **flags: Any) -> None:
        try:
            code = command(*arguments, **flags)
        except KvfenceError as error:
            code = OPERATOR if isinstance(error, OperatorError) else OURSELVES
            _say(error, code)
        except ModuleNotFoundError as error:
            code = OURSELVES if _is_ours(error) else OPERATOR
            if code == OURSELVES:
                traceback.print_exc()
            else:
                _say(OperatorError(_WHAT_IS_MISSING.format(error.name)), code)
        except BrokenPipeError:  # whoever read the output has gone: what is left of it goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = INTERRUPTED
        except (KeyboardInterrupt, SystemExit):  # rich ends the program when its reader has gone
            code = INTERRUPTED
        except Exception:  # noqa: BLE001 -- it is told whole, and is no finding
            traceback.print_exc()
            code = OURSELVES
        raise typer.Exit(code)

    return run


def _say(error: KvfenceError, code: int) -> None:
    whose = "" if code == OPERATOR else f" (ours, {type(error).__name__})"
    line = Text.assemble((f"kvfence: error{whose}: ", "bold red"), str(error))
    Console(stderr=True).print(line, soft_wrap=True)
