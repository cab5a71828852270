import subprocess
import sys

import pytest

import kvfence.kv


def test_every_public_name_is_there_and_is_where_it_says():
    assert set(kvfence.kv.__all__) == set(kvfence.kv._HOMES)
    for name, home in kvfence.kv._HOMES.items():
        value = getattr(kvfence.kv, name)
        module = getattr(value, "__module__", f"kvfence.kv.{home}")
        assert module in (f"kvfence.kv.{home}", "numpy")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        kvfence.kv.nothing  # noqa: B018


def test_prefix_index_and_fence_level_load_neither_numpy_nor_torch():
    program = (
        "import sys; from kvfence.kv import FenceLevel, KvIdentity, PrefixIndex; "
        "sys.exit(bool({'numpy', 'torch', 'xxhash'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
