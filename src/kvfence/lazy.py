"""Public names of a package that are loaded when they are first used.

A package that lists its names in this way can be imported where what lies behind some of them (numpy,
torch, a web framework) is not installed, or not wanted yet.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` (PEP 562) of a package; `homes` says in which of its modules a name lives.

    A name is looked up once: from then on it is an ordinary attribute of the package.
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"{package} has no {name!r}")
        value: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
