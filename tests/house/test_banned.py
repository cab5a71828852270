"""Banned calls are not there, every exception is needed, and each ban can fail."""

import pytest
from tests.house.banned import ALLOWED, BANS, banned_in
from tests.house.source import modules, sample

BAD = {
    "assert": "assert x",
    "global": "def f():\n    global x\n    x = 1",
    "print": "print('x')",
    "swallow": "try:\n    f()\nexcept Exception:\n    pass",
    "environ": "import os\nx = os.environ['A']",
    "pickle": "from pickle import loads",
    "torch.load": "torch.load(path)",
    "eval": "eval('1')",
    "remote code": "load(path, trust_remote_code=True)",
    "yaml.load": "yaml.load(text)",
    "shell": "subprocess.run('ls', shell=True)",
    "os.system": "os.system('ls')",
    "os.kill": "os.kill(pid, 9)",
    "mktemp": "tempfile.mktemp()",
    "sleep": "time.sleep(1)",
    "wall clock": "time.time()",
    "utcnow": "datetime.utcnow()",
    "hash()": "hash(tokens)",
    "id()": "id(request)",
    "random": "import random",
    "numpy.random": "rng = np.random.default_rng()",
    "torch.rand": "torch.rand(3)",
}
GOOD = """
import os
from contextlib import suppress
invariant(x, "why")
console.print("x")
model.eval()
time.monotonic()
subprocess.run(["ls"], shell=False)
load(path, trust_remote_code=False)
try:
    f()
except ValueError:
    pass
except Exception as error:
    raise PeerError("what") from error
with suppress(FileNotFoundError):
    os.unlink(path)
"""


def test_nothing_banned_is_used():
    found = [
        message
        for module in modules()
        for what, message in banned_in(module)
        if (module.place, what) not in ALLOWED
    ]
    assert found == []


def test_every_exception_is_needed():
    used = {(module.place, what) for module in modules() for what, _ in banned_in(module)}
    assert set(ALLOWED) - used == set()


def test_every_ban_has_a_bad_sample():
    assert set(BAD) == {ban.what for ban in BANS}


@pytest.mark.parametrize("what", BAD)
def test_a_ban_fires(what):
    found = dict(banned_in(sample(BAD[what], "kv/x.py")))
    assert "instead: " in found[what]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    f()\nexcept:\n    pass",
        "try:\n    f()\nexcept (ValueError, BaseException):\n    ...",
        "for x in y:\n    try:\n        f()\n    except Exception:\n        continue",
        "with contextlib.suppress(Exception):\n    f()",
    ],
)
def test_every_spelling_of_swallowing_is_found(text):
    assert [what for what, _ in banned_in(sample(text))] == ["swallow"]


def test_good_samples_are_left_alone():
    assert list(banned_in(sample(GOOD))) == []


def test_a_ban_of_some_packages_is_silent_elsewhere():
    assert list(banned_in(sample("hash(x)", "cli/x.py"))) == []
