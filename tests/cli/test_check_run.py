"""`kvfence check` as a command, against a fake server on a real socket; and what is wrong with flags."""

import json
import socket
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyrage
import pytest
from tests.check.fake.clock import Clock
from tests.check.fake.faults import setup_for
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.fake.threaded import served
from typer.testing import CliRunner

from kvfence.check.credentials import Redactor
from kvfence.cli.app import app
from kvfence.cli.check_run import Flags, targets_of
from kvfence.report.exit_codes import DEFAULT_FAIL_ON, OnInconclusive

FAST = Clock(a_s=0.001, b_s=0.0, step_s=0.001)
KEY = "sk-a-very-secret-key-of-anna"


def kvfence(*words: object, env: dict[str, str] | None = None):
    env = {"COLUMNS": "120", "TERM": "dumb", "KEY_A": KEY, **(env or {})}
    return CliRunner().invoke(app, [str(word) for word in words], env=env)


@pytest.fixture(scope="module")
def healthy():
    with served(FakeServer(Setup(clock=FAST))) as url:
        yield url


def test_a_healthy_server_ends_with_no_evidence_and_its_bound(healthy: str, tmp_path: Path):
    jsonl = tmp_path / "run.jsonl"
    result = kvfence(
        "check", healthy, "--only", "one-word", "--seed", 7, "--jsonl", jsonl, "--key-env", "KEY_A"
    )
    assert result.exit_code == 0, result.output
    assert "no evidence" in result.output
    assert KEY not in result.output + jsonl.read_text()
    (limits,) = json.loads(jsonl.read_text().splitlines()[0])["limits"]
    assert limits["requests"] > 0, "the lines say what was allowed"


def test_rows_that_are_mixed_up_are_found(tmp_path: Path):
    setup = setup_for("row-mixup/shifted-tables")
    with served(FakeServer(setup)) as url:
        result = kvfence("check", url, "--only", "one-word", "--seed", 7, "--json", tmp_path / "report.json")
    assert result.exit_code == 1, result.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["exit_code"] == 1


def test_full_evidence_is_read_by_its_recipient_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The whole way: a leak, its texts in one file of age, and nowhere else."""
    monkeypatch.chdir(tmp_path)
    identity = pyrage.x25519.Identity.generate()
    reports = [
        word for name in ("json", "sarif", "junit", "html") for word in (f"--{name}", f"report.{name}")
    ]
    with served(FakeServer(setup_for("row-mixup/swapped-tokens", Setup(clock=FAST)))) as url:
        result = kvfence(
            "check", url, "--only", "marker-sweep", "--seed", 7, "--jsonl", "run.jsonl", *reports,
            "--evidence", "full", "--evidence-to", identity.to_public(), "--evidence-days", 10,
        )  # fmt: skip
    assert result.exit_code == 1, result.output
    (sealed,) = (tmp_path / "kvfence-evidence").iterdir()
    assert (sealed.stat().st_mode & 0o777, sealed.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    content = json.loads(pyrage.decrypt(sealed.read_bytes(), [identity]))
    until = datetime.now(UTC).date() + timedelta(days=10)
    assert date.fromisoformat(content["keep_until"]) in {until, until - timedelta(days=1)}
    assert f"to be deleted by {content['keep_until']}" in result.output
    said = [one["text"] for one in content["texts"] if one["place"] == "content"]
    assert "".join(said).strip()
    others = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(others) == 6
    for path in others:
        assert "".join(said).encode() not in path.read_bytes(), path
    assert "".join(said) not in result.output
    with pytest.raises(pyrage.DecryptError):
        pyrage.decrypt(sealed.read_bytes(), [pyrage.x25519.Identity.generate()])


def test_a_plan_asks_nothing_but_the_probe_and_writes_nothing(healthy: str, tmp_path: Path):
    jsonl = tmp_path / "run.jsonl"
    result = kvfence("check", healthy, "--plan", "--profile", "standard")
    assert result.exit_code == 0, result.output
    assert "at most" in result.output
    assert "budget: " in result.output
    assert not jsonl.exists()


def test_an_interrupted_run_is_gone_on_with(healthy: str, tmp_path: Path):
    whole = tmp_path / "whole.jsonl"
    words = ("check", healthy, "--only", "one-word", "--only", "first-token", "--seed", 7)
    assert kvfence(*words, "--jsonl", whole).exit_code in {0, 5}
    lines = whole.read_text().splitlines(keepends=True)
    cut = next(index for index, line in enumerate(lines) if '"scenario_ended"' in line) + 1
    part = tmp_path / "part.jsonl"
    part.write_text("".join(lines[:cut]))
    result = kvfence("check", healthy, "--only", "one-word", "--only", "first-token", "--resume", part)
    assert result.exit_code in {0, 5}, result.output
    events = [json.loads(line) for line in part.read_text().splitlines()]
    started = [event["scenario"] for event in events if event["event"] == "scenario_started"]
    assert started == ["one-word", "first-token"]
    assert [event["event"] for event in events].count("run_ended") == 1


def test_a_run_is_gone_on_with_as_it_was_begun(healthy: str, tmp_path: Path):
    """Another seed, another profile, another target, and a run that is over: each is refused."""
    path = tmp_path / "run.jsonl"
    assert kvfence("check", healthy, "--only", "one-word", "--jsonl", path).exit_code in {0, 5}
    whole = path.read_text()
    over = kvfence("check", healthy, "--resume", path)
    path.write_text("".join(whole.splitlines(keepends=True)[:-1]) + '{"event":"run_en')
    refused = {
        over: "that run came to its end",
        kvfence("check", healthy, "--resume", path, "--seed", 8): "leave out --seed",
        kvfence("check", healthy, "--resume", path, "--profile", "deep"): "leave out --profile deep",
        kvfence("check", "http://127.0.0.1:9", "--resume", path): "that run is about",
    }
    for result, words in refused.items():
        assert (result.exit_code, words in result.output) == (2, True), result.output
    assert kvfence("check", healthy, "--only", "one-word", "--resume", path).exit_code in {0, 5}
    assert path.read_text().count('"run_ended"') == 1
    assert "run_en\n" not in path.read_text()


def test_every_report_is_written(healthy: str, tmp_path: Path):
    outputs = {name: tmp_path / f"report.{name}" for name in ("json", "sarif", "junit", "html")}
    flags = [word for name, path in outputs.items() for word in (f"--{name}", path)]
    kvfence("check", healthy, "--only", "one-word", *flags)
    assert all(path.stat().st_size for path in outputs.values())


def test_nobody_there_is_its_own_exit_code(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = kvfence("check", f"http://127.0.0.1:{port}")
    assert result.exit_code == 4
    assert "Traceback" not in result.output
    assert result.output.startswith("nothing was tested: ")
    assert "no evidence" not in result.output
    assert "warning" not in result.output, "it is said once, not twice"


def test_refused_credentials_are_the_same_exit_code():
    with served(FakeServer(Setup(clock=FAST, keys={"sk-another-key": "anna"}))) as url:
        result = kvfence("check", url, "--key-env", "KEY_A")
    assert result.exit_code == 4, result.output
    assert KEY not in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name one URL"),
        (("http://h", "--targets", "x.toml"), "and not both"),
        (("http://h", "--profile", "quik"), "did you mean quick"),
        (("http://h", "--allow", "havy"), "no such hazard"),
        (("http://h", "--evidence", "all"), "markers"),
        (("http://h", "--evidence", "full"), "belong together"),
        (("http://h", "--evidence-to", "age1x"), "belong together"),
        (("http://h", "--budget", "money=5"), "--price"),
        (("http://h", "--replay", "7.boundary"), "that a finding shows"),
        (("http://h", "--replay", "7.one-word.quick", "--seed", "3"), "leave out --seed"),
        (("http://h", "--key-env", "NO_SUCH_VARIABLE_HERE"), "NO_SUCH_VARIABLE_HERE"),
        (("http://h", "--two-tenants"), "two keys"),
        (("--targets", "x.toml", "--model", "m"), "stand in the profile"),
        (("http://h", "--only", "one-wird"), "did you mean"),
        (("http://h", "--replay", "7.nope.quick"), "nope"),
        (("http://h", "--json", "no-such-folder/x.json"), "no writable directory"),
        (("http://h", "--resume", "no-such-file.jsonl"), "no-such-file"),
    ],
)
def test_wrong_flags_are_said_before_the_first_request(words: tuple[str, ...], said: str):
    result = kvfence("check", *words, env={"COLUMNS": "200"})
    assert result.exit_code == 2, result.output
    assert said in result.output


def test_the_help_reads_in_one_screen():
    result = kvfence("check", "--help", env={"COLUMNS": "100"})
    assert len(result.output.splitlines()) <= 45


def test_the_request_timeout_is_every_targets(tmp_path: Path):
    profile = tmp_path / "targets.toml"
    profile.write_text('[[target]]\nurl = "http://a"\n[[target]]\nurl = "http://b"\nrequest_timeout_s = 90\n')
    flags = flags_of(targets=profile)
    assert [target.request_timeout_s for target in targets_of(flags, {}, Redactor())] == [60, 90]
    flags = flags_of(targets=profile, request_timeout_s=300.0)
    assert [target.request_timeout_s for target in targets_of(flags, {}, Redactor())] == [300, 300]


def flags_of(**changed: object) -> Flags:
    """The flags of a command without any, but for these."""
    flags: dict[str, object] = {
        "url": None,
        "profile": "quick",
        "hours": None,
        "key_names": (),
        "has_two_tenants": False,
        "targets": None,
        "model": None,
        "allowed": (),
        "only": (),
        "is_plan_only": False,
        "budget": [],
        "price": None,
        "seed": None,
        "replay": None,
        "resume": None,
        "is_own_server": False,
        "request_timeout_s": None,
        "jsonl": None,
        "outputs": {},
        "evidence": "markers",
        "evidence_to": None,
        "evidence_days": 30,
        "baseline": None,
        "fail_on": DEFAULT_FAIL_ON,
        "on_inconclusive": OnInconclusive.TELL,
    }
    return Flags(**(flags | changed))
