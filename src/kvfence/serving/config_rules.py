"""What each setting of a deployment accepts: one rule a field of `ServeConfig`.

A rule takes a raw value, from a flag or from TOML, and returns the typed one, or raises OperatorError
that says which setting, what is wrong with it, and what would be right. Rules look at one value each;
what must hold between several is `config.py`'s.
"""

import math
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from kvfence.kv import FenceLevel
from kvfence.protocol.errors import OperatorError

FIT = "fit"
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
DTYPE_NAMES = tuple(DTYPES.values())
FENCE_LEVELS = tuple(level.value for level in FenceLevel)
NODES_MAX = 64
PAGE_TOKENS_MAX = 256
TOKENS_MAX = 1 << 40

Rule = Callable[[str, Any], Any]


def reject(name: str, value: object, wanted: str) -> NoReturn:
    """Raise the OperatorError of one bad value."""
    raise OperatorError(
        f"{name} is {value!r}, which is not allowed: it must be {wanted}; change --{name.replace('_', '-')} "
        f"or the key {name} of the config file"
    )


def did_you_mean(word: str, known: tuple[str, ...]) -> str:
    """Return a suggestion for a misspelt word, or what there is."""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(sorted(known))}"


def integer(low: int, high: int) -> Rule:
    """Accept a whole number from `low` to `high`."""

    def rule(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            reject(name, value, f"a whole number from {low:,} to {high:,}")
        return value

    return rule


def seconds(low: float, high: float) -> Rule:
    """Accept a number of seconds."""

    def rule(name: str, value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not low <= value <= high:
            reject(name, value, f"a number of seconds from {low:g} to {high:g}")
        return float(value)

    return rule


def share(name: str, value: Any) -> float:
    """Accept a share of something, above 0 and up to 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 1:
        reject(name, value, "a share above 0 and up to 1")
    return float(value)


def optional(rule: Rule) -> Rule:
    """Accept None as well."""
    return lambda name, value: None if value is None else rule(name, value)


def boolean(name: str, value: Any) -> bool:
    """Accept true and false, no words or numbers in their place."""
    if not isinstance(value, bool):
        reject(name, value, "true or false")
    return value


def text(name: str, value: Any) -> str:
    """Accept a string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        reject(name, value, "text that is not empty")
    return value


def file_path(name: str, value: Any) -> Path:
    """Accept a path of a file that is there."""
    if not isinstance(value, str | Path):
        reject(name, value, "the path of a file")
    path = Path(value).expanduser()
    if not path.is_file():
        raise OperatorError(
            f"{name} names {path}, and there is no such file; correct the path or create the file"
        )
    return path


def new_file(name: str, value: Any) -> Path:
    """Accept a path that a file can be written to, made absolute: processes with other directories use it."""
    if not isinstance(value, str | Path) or not str(value):
        reject(name, value, "the path of a file")
    path = Path(value).expanduser().absolute()
    if path.is_dir() or not path.parent.is_dir():
        what = "that is a directory" if path.is_dir() else f"there is no directory {path.parent}"
        raise OperatorError(f"{name} names {path}, and {what}; name a file in a directory that is there")
    return path


def choice(*known: str) -> Rule:
    """Accept one of a few words."""

    def rule(name: str, value: Any) -> str:
        if value not in known:
            reject(name, value, f"one of {', '.join(known)} ({did_you_mean(str(value), known)})")
        return str(value)

    return rule


def dtype(name: str, value: Any) -> str:
    """Accept torch's name of a dtype, or the short one."""
    return str(choice(*DTYPE_NAMES)(name, DTYPES.get(value, value) if isinstance(value, str) else value))


def context(name: str, value: Any) -> int | str | None:
    """Accept a number of tokens, "fit" (lower it until it fits the pools) or None (the model's own)."""
    if value is None:
        return None
    if value == FIT:
        return FIT
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= TOKENS_MAX:
        reject(name, value, f'a whole number of tokens from 2 on, or "{FIT}" to lower it to what fits')
    return int(value)


def names(name: str, value: Any) -> tuple[str, ...]:
    """Accept a list of different words."""
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) and word for word in value):
        reject(name, value, "a list of names")
    return tuple(dict.fromkeys(value))
