"""What can be imported of the package where numpy is not wanted."""

import subprocess
import sys


def test_prefix_index_and_fence_level_load_neither_numpy_nor_torch():
    program = (
        "import sys; from kvfence.kv import FenceLevel, KvIdentity, PrefixIndex; "
        "sys.exit(bool({'numpy', 'torch', 'xxhash'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
