"""Run directories: private, locked by the living, swept after the dead."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.serving.rundir import PATH_BYTES_MAX, RunDir, Swept, runtime_base, sweep


@pytest.fixture
def base():
    """A short path: pytest's own are too long for the addresses of sockets."""
    with tempfile.TemporaryDirectory(prefix="kvf") as path:
        yield Path(path)


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "300"])
    yield process
    process.kill()
    process.wait()


def mode(path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def abandon(run_dir: RunDir) -> None:
    """What the kernel does when the launcher is killed: the lock is let go, nothing else."""
    os.close(run_dir._lock_fd)


def test_the_base_is_the_users_runtime_directory(tmp_path):
    base = runtime_base({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert base == tmp_path / "kvfence"
    assert mode(base) == 0o700
    assert runtime_base({"XDG_RUNTIME_DIR": str(tmp_path)}) == base


@pytest.mark.parametrize("environment", [{}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "/nowhere/at/all"}])
def test_without_one_it_is_a_private_directory_of_the_temporary_one(tmp_path, monkeypatch, environment):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runtime_base(environment) == tmp_path / f"kvfence-{os.getuid()}"


def test_a_base_that_others_can_read_is_refused(tmp_path):
    (tmp_path / "kvfence").mkdir()
    (tmp_path / "kvfence").chmod(0o755)
    with pytest.raises(OperatorError, match="this user's alone"):
        runtime_base({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_a_base_that_is_a_link_is_refused(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (tmp_path / "kvfence").symlink_to(elsewhere)
    with pytest.raises(OperatorError, match="this user's alone"):
        runtime_base({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_a_base_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(OperatorError, match="this user's alone"):
        runtime_base({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_a_run_directory_is_private_and_its_secret_its_own(base):
    one, two = RunDir.create(base), RunDir.create(base)
    assert mode(one.path) == 0o700
    assert mode(one.secret_path) == 0o600
    assert len(one.secret_path.read_bytes()) == 32
    assert one.secret_path.read_bytes() != two.secret_path.read_bytes()
    assert one.deployment != two.deployment


def test_a_path_too_long_for_sockets_is_refused(base):
    long = base / ("x" * PATH_BYTES_MAX)
    long.mkdir()
    with pytest.raises(OperatorError, match="shorter path"):
        RunDir.create(long)


def test_removing_leaves_nothing(base):
    run_dir = RunDir.create(base)
    (run_dir.path / "router.control").touch()
    run_dir.remove()
    assert [entry.name for entry in base.iterdir()] == [".lock"]


def test_a_living_deployment_is_not_swept(base, child):
    run_dir = RunDir.create(base)
    run_dir.record("prefill-0", child.pid)
    assert sweep(base) == ()
    assert child.poll() is None
    assert run_dir.path.exists()


def test_a_dead_deployment_is_swept_with_its_processes(base, child):
    run_dir = RunDir.create(base)
    run_dir.record("prefill-0", child.pid)
    child.send_signal(signal.SIGSTOP)
    abandon(run_dir)
    assert sweep(base) == (Swept(run_dir.deployment, (child.pid,), ()),)
    assert child.wait() == -signal.SIGKILL
    assert not run_dir.path.exists()
    assert sweep(base) == ()


def test_a_process_that_took_the_number_over_is_left_alone(base, child):
    run_dir = RunDir.create(base)
    run_dir.record("prefill-0", child.pid)
    file = run_dir.path / "prefill-0.process"
    record = json.loads(file.read_bytes())
    run_dir.write(file, json.dumps({**record, "start_ticks": 1}).encode())
    abandon(run_dir)
    assert sweep(base) == (Swept(run_dir.deployment, (), ()),)
    assert child.poll() is None


def test_a_process_that_will_not_die_keeps_the_directory(base, child, monkeypatch):
    run_dir = RunDir.create(base)
    run_dir.record("prefill-0", child.pid)
    abandon(run_dir)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
    assert sweep(base, patience_s=0) == (Swept(run_dir.deployment, (), (child.pid,)),)
    assert run_dir.path.exists()


def test_half_made_and_unreadable_directories_are_swept_too(base):
    (base / "half").mkdir()
    run_dir = RunDir.create(base)
    (run_dir.path / "decode-0.process").write_text("{")
    run_dir.record("decode-1", 2**22 + 1)  # nobody has that number
    abandon(run_dir)
    assert {swept.deployment for swept in sweep(base)} == {"half", run_dir.deployment}
    assert [entry.name for entry in base.iterdir()] == [".lock"]


def test_a_link_in_the_base_is_not_followed(base, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (base / "link").symlink_to(precious)
    assert sweep(base) == ()
    assert precious.exists()


def test_the_lock_is_let_go_by_a_kill_and_is_no_childs(base):
    """The real thing: a launcher with a child is killed; the child does not keep the lock."""
    words = (
        "import subprocess, sys; from pathlib import Path; from kvfence.serving.rundir import RunDir\n"
        "run_dir = RunDir.create(Path(sys.argv[1]))\n"
        "child = subprocess.Popen(['sleep', '300'], stdout=subprocess.DEVNULL)\n"
        "run_dir.record('decode-0', child.pid)\n"
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", words, str(base)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child_pid = int(launcher.stdout.readline())
    assert sweep(base) == ()
    launcher.kill()
    launcher.communicate()
    (swept,) = sweep(base)
    assert swept.killed == (child_pid,)
