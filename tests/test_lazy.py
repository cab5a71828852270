"""Names of a package that are loaded when they are first used, and the packages that list theirs so."""

import importlib
import subprocess
import sys
import types

import pytest

from kvfence.lazy import on_first_use

PACKAGES = pytest.mark.parametrize("package", ["kvfence.kv", "kvfence.engine", "kvfence.serving"])


@pytest.fixture
def package(monkeypatch):
    """A package with one module, in which one name lives."""
    package, home = types.ModuleType("cabinet"), types.ModuleType("cabinet.drawer")
    home.spoon = object()
    package.__getattr__ = on_first_use("cabinet", {"spoon": "drawer"})
    monkeypatch.setitem(sys.modules, "cabinet", package)
    monkeypatch.setitem(sys.modules, "cabinet.drawer", home)
    return package


def test_a_name_is_loaded_once_and_is_an_attribute_then(package):
    assert "spoon" not in vars(package)
    assert package.spoon is sys.modules["cabinet.drawer"].spoon
    assert "spoon" in vars(package)


def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="cabinet has no 'fork'"):
        package.fork  # noqa: B018


@PACKAGES
def test_every_public_name_is_where_the_package_says(package):
    listed = importlib.import_module(package)
    assert set(listed.__all__) == set(listed._HOMES)
    for name, home in listed._HOMES.items():
        assert getattr(listed, name) is getattr(importlib.import_module(f"{package}.{home}"), name)


@PACKAGES
def test_importing_a_package_imports_nothing_heavy(package):
    program = (
        f"import sys, {package}\n"
        "sys.exit(bool({'numpy', 'torch', 'transformers', 'starlette', 'zmq', 'rich'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
