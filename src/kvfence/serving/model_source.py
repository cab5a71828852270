"""The model that a deployment serves, resolved without importing torch.

A GGUF file that was never served here is converted once, by a process of its own: the launcher stays
small and starts fast, and Ctrl-C ends the conversion with it.
"""

import subprocess
import sys

from kvfence.engine import ModelFolder, is_converted, resolve_model
from kvfence.protocol.errors import OperatorError
from kvfence.serving.banner import StartView

REFUSED = 2
CONVERT = f"""
import sys
from kvfence.engine import resolve_model
from kvfence.protocol.errors import OperatorError
try:
    resolve_model(*sys.argv[1:])
except OperatorError as error:
    print(error, file=sys.stderr)
    sys.exit({REFUSED})
"""
ERROR_CHARACTERS_MAX = 2_000


def find_model(source: str | None, view: StartView) -> ModelFolder:
    """Return the folder of a model (None: the default one). Raises OperatorError."""
    if not is_converted(source):
        view.step("model", "converting it, once")
        _convert(source)
    return resolve_model(source)


def _convert(source: str | None) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONVERT, *([] if source is None else [source])],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode == REFUSED:  # the operator needs no traceback
        raise OperatorError(f"the model cannot be converted: {done.stderr.strip()}")
    if done.returncode != 0:
        raise OperatorError(
            "the model cannot be converted; correct what is said here, or name another with --model:\n"
            f"{done.stderr[-ERROR_CHARACTERS_MAX:]}"
        )
