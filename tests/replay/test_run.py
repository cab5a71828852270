"""A replay as a whole: which deployments in which order; and once, for real, acts 2 and 3."""

import io
import os
import signal
from dataclasses import replace

import pytest
from rich.console import Console

from kvfence.faults import Layer
from kvfence.protocol.errors import OperatorError
from kvfence.replay import run as module
from kvfence.replay.acts import Act
from kvfence.replay.numbers import Sizes
from kvfence.replay.run import NOT_SHOWN, SHOWN, ReplaySettings, replay
from kvfence.replay.scene import INCIDENT, fixed_flags
from tests.replay.samples import ADMISSION_TRIAL, FIX, LEAKING_TRIAL, MANIFEST_TRIAL, answered

SMALL = Sizes(context_tokens=64, pool_tokens=40, page_tokens=4)
SHORT = "false-completion/whole-claimed"


class Fakes:
    """What would be run, and the order in which it is."""

    def __init__(self):
        self.order, self.trials, self.fix = [], {}, FIX

    def fleet(self, environment):
        self.environment = environment
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.order.append("closed")

    def start(self, flags):
        self.order.append(f"start {self.name(flags)}")
        return self

    def ready(self, flags, say):
        self.order.append(f"ready {self.name(flags)}")
        return self

    def retire(self, flags):
        self.order.append(f"retire {self.name(flags)}")

    @staticmethod
    def name(flags):
        off = [flags[i + 1] for i, word in enumerate(flags) if word == "--unsafe-without"]
        alone = {layer.value for layer in Layer} - set(off)
        unsafe = [layer for layer in ("admission", "refusal", "manifest", "seal", "guard") if layer in alone]
        return "fixed" if len(unsafe) == 5 else (unsafe or ["none"])[0]

    def count_tokens(self, text):
        return len(text.split())

    def run_trial(self, deployment, play, alone, say):
        self.order.append(f"trial {alone.value if alone else 'none'}")
        return self.trials.get(alone, MANIFEST_TRIAL if alone else LEAKING_TRIAL)

    def show_fix(self, refusing, fixed, play, say):
        self.order.append("fix")
        return self.fix


@pytest.fixture
def fakes(monkeypatch):
    made = Fakes()
    monkeypatch.setattr(module, "Fleet", made.fleet)
    monkeypatch.setattr(module, "run_trial", made.run_trial)
    monkeypatch.setattr(module, "show_fix", made.show_fix)
    return made


def played(settings):
    output = io.StringIO()
    code = replay(settings, {"A": "b"}, Console(file=output, width=120))
    return code, output.getvalue()


def sealed(layer, reason):
    return replace(MANIFEST_TRIAL, alone=layer, reasons=(reason,))


def test_all_acts_in_order_each_deployment_started_ahead(fakes, tmp_path):
    fakes.trials = {
        Layer.ADMISSION: ADMISSION_TRIAL,
        Layer.SEAL: sealed(Layer.SEAL, "seal_torn"),
        Layer.GUARD: sealed(Layer.GUARD, "guard_seal"),
    }
    path = tmp_path / "r.html"
    code, output = played(ReplaySettings(sizes=SMALL, html=path))
    assert code == SHOWN, output
    assert fakes.order == [
        *("start none", "ready none", "trial none", "start admission", "retire none"),
        *("ready admission", "start manifest", "trial admission", "retire admission"),
        *("ready manifest", "start seal", "trial manifest", "retire manifest"),
        *("ready seal", "start guard", "trial seal", "retire seal"),
        *("ready guard", "start fixed", "trial guard", "retire guard"),
        *("ready fixed", "start fixed", "fix", "closed"),
    ]
    assert fakes.environment == {"A": "b"}
    assert "Act 1: The numbers" in path.read_text()
    assert f"Report: {path}" in output
    assert output.count(": shown") == 4


def test_one_act_starts_what_it_needs_alone(fakes):
    assert played(ReplaySettings(acts=(Act.NUMBERS,), sizes=SMALL))[0] == SHOWN
    assert fakes.order == ["closed"]
    assert played(ReplaySettings(acts=(Act.FIX,)))[0] == SHOWN
    assert fakes.order[1:] == ["start fixed", "ready fixed", "start fixed", "fix", "closed"]
    assert fixed_flags("fit") != fixed_flags("2048")


def test_an_act_that_did_not_show_it_ends_with_1_and_a_report(fakes, tmp_path):
    fakes.trials = {None: answered(LEAKING_TRIAL, prompt_tokens=1)}
    path = tmp_path / "r.html"
    code, output = played(ReplaySettings(acts=(Act.LEAK,), html=path))
    assert code == NOT_SHOWN
    assert "act 2 did not show what it says." in output
    assert "not shown" in path.read_text()


def test_a_layer_that_lets_it_through_ends_with_1(fakes):
    fakes.trials = {Layer.SEAL: LEAKING_TRIAL, Layer.GUARD: sealed(Layer.GUARD, "guard_seal")}
    code, output = played(ReplaySettings(acts=(Act.FENCE,), fault=SHORT))
    assert code == NOT_SHOWN
    assert "act 3: NOT SHOWN" in output


def test_what_cannot_be_played_or_written_is_said_before_anything_starts(fakes, tmp_path):
    with pytest.raises(OperatorError, match="no act"):
        ReplaySettings(acts=())
    for path in (tmp_path, tmp_path / "no" / "r.html"):
        with pytest.raises(OperatorError, match="no report can be written"):
            ReplaySettings(html=path)
    with pytest.raises(OperatorError, match="kvfence simulate"):
        played(ReplaySettings(fault="padding-touches-live/page-zero"))
    assert fakes.order == []


def test_sigterm_ends_it_as_ctrl_c_does(fakes, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(module, "run_trial", lambda *given: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        played(ReplaySettings(acts=(Act.LEAK,)))
    assert fakes.order[-1] == "closed"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.e2e
def test_the_incident_leaks_and_a_layer_alone_stops_it_on_real_processes(monkeypatch, tmp_path):
    # The other layers are played by `tests/e2e/test_incident.py`; here it is about the replay itself.
    monkeypatch.setattr(module.Play, "layers", property(lambda play: (Layer.MANIFEST,)))
    home = tmp_path / "before"
    home.mkdir()
    path = tmp_path / "r.html"
    settings = ReplaySettings(acts=(Act.LEAK, Act.FENCE), fault=INCIDENT, html=path)
    output = io.StringIO()
    code = replay(settings, os.environ, Console(file=output, width=120))
    assert code == SHOWN, output.getvalue()
    report = path.read_text()
    for word in ("zanzibar", "quokka", "marmalade"):
        assert f"<mark>{word}</mark>" in report
    assert "manifest_tokens" in report
    assert "The map is read from the decode node" in report
