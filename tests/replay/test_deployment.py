"""A deployment's process, as the replay sees it, with a small program in the place of `kvfence serve`."""

import os
import signal
import sys
from pathlib import Path

import pytest

from kvfence.protocol.errors import InternalError, OperatorError
from kvfence.replay import deployment as module
from kvfence.replay.deployment import Deployment, serve_words
from tests.e2e.deployment import runs

BANNER = """\
import os, pathlib, signal, sys, time
home = pathlib.Path(os.environ["XDG_RUNTIME_DIR"]) / "kvfence" / "abc"
home.mkdir(parents=True)
(home / "prefill-0.process").write_text('{"pid": %d}' % os.getpid())
(home / "decode-0.log").write_text("the log's last line")
for line in ("decode-0: starting", "not a step", "decode-0: ready"):
    print(line, flush=True)
print("kvfence 0.1.0  serves a-model\\n       URL  http://127.0.0.1:8123\\nCtrl-C drains and stops", flush=True)
signal.pause()
"""
REFUSES = "import sys; print('kvfence: error: too large'); sys.exit(2)"
CRASHES = "print('decode-0: starting'); print('it broke'); raise SystemExit(3)"


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Start a deployment whose `kvfence` is this program."""
    started = []

    def begin(program):
        folder = tmp_path / str(len(started))
        (folder / "kvfence").mkdir(parents=True)
        # Stands where the package would be found first; its `child` becomes the program.
        script = folder / "program.py"
        script.write_text(program)
        monkeypatch.setattr(module.sys, "executable", sys.executable)
        real = module.subprocess.Popen

        def popen(words, **more):
            return real([sys.executable, str(script)], **more)

        monkeypatch.setattr(module.subprocess, "Popen", popen)
        made = Deployment(("--context", "2048"), os.environ)
        monkeypatch.setattr(module.subprocess, "Popen", real)
        started.append(made)
        return made

    yield begin
    for made in started:
        made.stop()


def test_the_command_is_what_an_operator_would_type():
    assert serve_words(("--context", "fit")) == (
        *("serve", "--host", "127.0.0.1", "--port", "0"),
        *("--context", "fit"),
    )


def test_it_is_ready_when_its_banner_is_whole(start):
    made = start(BANNER)
    told = []
    assert made.wait_ready(lambda words, *, is_detail: told.append((words, is_detail))) is made
    assert told == [("decode-0: starting", True), ("decode-0: ready", True)]
    assert made.client._port == 8123
    assert made.client._model == "a-model"
    assert made.run_dir.name == "abc"
    assert made.command == "kvfence serve --host 127.0.0.1 --port 0 --context 2048"


def test_nobody_is_asked_before_it_is_ready(start):
    with pytest.raises(InternalError, match="wait_ready"):
        _ = start(BANNER).client


def test_a_start_that_fails_shows_what_was_said(start):
    with pytest.raises(OperatorError, match="did not start; it said:\ndecode-0: starting\nit broke"):
        start(CRASHES).wait_ready(lambda words, *, is_detail: None)


def test_a_start_that_must_be_refused(start):
    assert start(REFUSES).wait_refused() == "kvfence: error: too large"
    with pytest.raises(InternalError, match="must not start ended with 3"):
        start(CRASHES).wait_refused()


def test_waiting_ends_with_the_thing_the_time_or_the_deployment(start, monkeypatch):
    made = start(BANNER).wait_ready(lambda words, *, is_detail: None)
    answers = iter([False, True])
    assert made.wait_until(lambda: next(answers), 10) is True
    assert made.wait_until(lambda: False, 0.0) is False
    made.signal("prefill-0", signal.SIGKILL)  # the program is its own node
    with pytest.raises(InternalError, match=r"(?s)ended by itself.*the log's last line"):
        made.wait_until(lambda: False, 10)


def test_stopping_leaves_no_process_and_no_file(start):
    made = start(BANNER).wait_ready(lambda words, *, is_detail: None)
    pid, home = made.pid("prefill-0"), Path(made._home.name)
    assert runs(pid)
    made.stop()
    assert not runs(pid)
    assert not home.exists()
    made.stop()  # once more is no fault


def test_one_that_does_not_listen_is_killed(start, monkeypatch):
    deaf = BANNER.replace(
        "signal.pause()",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf', flush=True)\nsignal.pause()\nsignal.pause()",
    )
    made = start(deaf).wait_ready(lambda words, *, is_detail: None)
    assert made.wait_until(lambda: "deaf" in made.output, 10)
    monkeypatch.setattr(module, "STOP_SECONDS_MAX", 0.05)
    pid = made.pid("prefill-0")
    made.stop()
    assert not runs(pid)
