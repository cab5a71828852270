"""Modules keep no state, packages list what is public, and the checks of it can fail."""

import pytest
from tests.house.source import modules, sample
from tests.house.state import mutable_state, public_list_faults


def test_no_module_keeps_state():
    assert [fault for module in modules() for fault in mutable_state(module)] == []


@pytest.mark.parametrize(
    "text",
    [
        "cache = {}",
        "seen: set[int] = set()",
        "queue = collections.deque()\nwaiting = deque()",
        "TABLE = {}\ndef f(x):\n    TABLE[x] = 1",
        "TABLE = []\ndef f(x):\n    TABLE.append(x)",
        "TABLE = {1: 2}\ndel TABLE[1]",
    ],
)
def test_state_is_found(text):
    assert list(mutable_state(sample(text)))


@pytest.mark.parametrize(
    "text",
    [
        "TABLE = {1: 2}\ndef f(x):\n    return TABLE[x]",
        "_TABLE: Final = {1: 2}",
        "__all__ = ['x']",
        "limits = (1, 2)\nnames = frozenset({1})",
        "def f():\n    cache = {}\n    cache[1] = 2",
        "class A:\n    x: list[int] = field(default_factory=list)",
    ],
)
def test_constants_and_locals_are_no_state(text):
    assert list(mutable_state(sample(text))) == []


def test_every_package_lists_what_is_public():
    packages = [module for module in modules() if module.place.endswith("/__init__.py")]
    assert packages
    assert [fault for module in packages for fault in public_list_faults(module)] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "says nothing"),
        ('"""A."""\nfrom kvfence.kv.a import b', "no __all__"),
        ('"""A."""\nfrom kvfence.kv.a import b\n__all__ = ["b", "c"]', "has c, which is not there"),
        ('"""A."""\nfrom kvfence.kv.a import b, d\n__all__ = ["b"]', "d is brought in"),
    ],
)
def test_a_bad_public_list_is_found(text, said):
    (fault,) = public_list_faults(sample(text, "kv/__init__.py"))
    assert said in fault


@pytest.mark.parametrize(
    "text",
    [
        '"""A."""',
        '"""A."""\nfrom typing import Any\nfrom kvfence.kv.a import b as c\n__all__ = ["c", "f"]\ndef f(): ...',
        '"""A."""\nif TYPE_CHECKING:\n    from kvfence.kv.a import b\n__all__ = ["b"]',
    ],
)
def test_a_good_public_list_is_none(text):
    assert list(public_list_faults(sample(text, "kv/__init__.py"))) == []
