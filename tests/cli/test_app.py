"""The command line: flags, versions, and how commands end."""

import dataclasses
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from kvfence import __version__
from kvfence.cli import serve as serve_module
from kvfence.cli.app import app
from kvfence.cli.endings import ending_well
from kvfence.cli.serve import FLAGS
from kvfence.protocol.errors import InvariantError, OperatorError
from kvfence.serving.config import ACKNOWLEDGEMENT, KEY_OF_FIELD, KEYS, ServeConfig

FIELDS = [field.name for field in dataclasses.fields(ServeConfig)]


@pytest.fixture
def served(monkeypatch):
    """What `kvfence serve` would serve; nothing is started."""
    settings = []
    monkeypatch.setattr(serve_module, "_run", lambda config: settings.append(config) or 0)
    return settings


def invoke(*words: str):
    return CliRunner().invoke(app, words, env={"COLUMNS": "200", "TERM": "dumb"})


def plain(words: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", words)


def test_every_setting_has_a_flag_and_no_other():
    assert list(FLAGS) == [name for name in FLAGS if name in FIELDS]
    assert set(FLAGS) == set(FIELDS)


def test_help_names_every_flag():
    words = plain(invoke("serve", "--help").output)
    for key in KEYS:
        assert f"--{key.replace('_', '-')}" in words
    assert "--config" in words
    assert "default: sealed" in words


def test_version_of_the_real_program():
    done = subprocess.run(
        [sys.executable, "-m", "kvfence", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"kvfence {__version__}\n"


def test_no_flags_are_the_defaults(served):
    assert invoke("serve").exit_code == 0
    assert served == [ServeConfig()]


def test_flags_reach_the_settings(served, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("port = 1\nprefill = 3\nprefix_cache = true\n")
    words = (
        "--port 2 --fence paranoid --context fit --no-prefix-cache --hello-interval-s 0.5 --pool-tokens 64"
    )
    assert invoke("serve", "--config", str(file), *words.split()).exit_code == 0
    (settings,) = served
    assert (settings.port, settings.prefill, settings.fence) == (2, 3, "paranoid")
    assert (settings.context, settings.prefix_cache) == ("fit", False)
    assert (settings.hello_interval_s, settings.pool_tokens) == (0.5, 64)


WORDS = {
    "dtype": '"float16"',
    "device": '"cuda"',
    "fence": '"contract"',
    "transport": '"tcp"',
    "context": "7",
    "api_keys": '"FILE"',
    "admin_key_file": '"FILE"',
    "unsafe_faults": "[]",
    "unsafe_without": "[]",
    "lost_after_s": "9.5",
}


def other_words(name: str) -> str:
    """A value in TOML that is not the default's."""
    default = getattr(ServeConfig(), name)
    match FLAGS[name][1]:
        case kind if name in WORDS:
            return WORDS[name]
        case kind if kind is bool:
            return str(not default).lower()
        case kind if kind is int:
            return str((default or 6) + 1)
        case kind if kind is float:
            return "0.75"
    return '"x"'


@pytest.mark.parametrize("name", [name for name in FIELDS if name != ACKNOWLEDGEMENT])
def test_a_flag_that_is_not_given_lets_the_file_speak(served, tmp_path, name):
    file = tmp_path / "keys.toml"
    file.touch()
    config = tmp_path / "c.toml"
    config.write_text(f"{KEY_OF_FIELD.get(name, name)} = {other_words(name).replace('FILE', str(file))}\n")
    result = invoke("serve", "--config", str(config))
    assert result.exit_code == 0, result.output
    (settings,) = served
    changed = {field for field in FIELDS if getattr(settings, field) != getattr(ServeConfig(), field)}
    assert changed == {name} - {"unsafe_faults", "unsafe_without"}


def test_faults_are_wanted_twice_and_known(served):
    unknown = invoke("serve", "--unsafe-fault", "no-such", "--i-understand-this-leaks-data")
    assert unknown.exit_code == 2
    assert "no fault that kvfence knows" in plain(unknown.output)
    once = invoke("serve", "--unsafe-fault", "rejected-continues/split-state")
    assert once.exit_code == 2
    assert served == []
    words = ["--unsafe-fault", "rejected-continues/split-state", "--i-understand-this-leaks-data"]
    assert invoke("serve", *words).exit_code == 0
    assert served[0].unsafe_faults == ("rejected-continues/split-state",)


def test_layers_are_left_out_by_name_and_wanted_twice(served):
    unknown = invoke("serve", "--unsafe-without", "sael", "--i-understand-this-leaks-data")
    assert unknown.exit_code == 2
    assert "did you mean 'seal'" in plain(unknown.output)
    assert invoke("serve", "--unsafe-without", "seal").exit_code == 2
    assert served == []
    words = ["--unsafe-without", "seal", "--unsafe-without", "guard", "--i-understand-this-leaks-data"]
    assert invoke("serve", *words).exit_code == 0
    assert served[0].unsafe_without == ("seal", "guard")


def test_a_fault_in_the_config_file_is_looked_up_too(served, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('unsafe_fault = ["no-such"]\n')
    words = ("serve", "--config", str(config), "--i-understand-this-leaks-data")
    assert "no-such" in plain((result := invoke(*words)).output) and result.exit_code == 2
    assert served == []


def test_the_incident_sizes_prefill_and_leaves_decode_its_default(served):
    words = ["--pool-tokens", "64", "--context", "100", "--i-understand-this-leaks-data", "--unsafe-fault"]
    assert invoke("serve", *words, "rejected-continues/incident").exit_code == 0
    assert (served[0].pool_tokens_of("prefill"), served[0].pool_tokens_of("decode")) == (64, None)
    assert invoke("serve", *words, "rejected-continues/admission-unchecked").exit_code == 0
    assert (served[1].pool_tokens_of("prefill"), served[1].pool_tokens_of("decode")) == (64, 64)


def test_a_misspelt_flag_is_a_usage_error(served):
    result = invoke("serve", "--fnce", "off")
    assert result.exit_code == 2
    assert "--fence" in plain(result.output)
    assert served == []


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OperatorError("mend this"), 2, "kvfence: error: mend this"),
        (InvariantError("law 4"), 3, "kvfence: error (ours, InvariantError): law 4"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_how_a_command_ends(error, code, said, capsys):
    def command() -> int:
        raise error

    with pytest.raises(typer.Exit) as ending:
        ending_well(command)()
    assert ending.value.exit_code == code
    assert capsys.readouterr().err.strip() == said


def test_a_command_says_its_own_exit_code():
    with pytest.raises(typer.Exit) as ending:
        ending_well(lambda: 5)()
    assert ending.value.exit_code == 5


def test_an_error_that_nobody_knows_is_not_hidden(capsys):
    def command() -> int:
        return {}["x"]

    with pytest.raises(typer.Exit) as ending:
        ending_well(command)()
    assert ending.value.exit_code == 3
    assert "KeyError: 'x'" in capsys.readouterr().err


def test_one_clear_message_and_no_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "kvfence", "serve", "--context", "9", "--pool-tokens", "8"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "9 tokens is larger than the prefill pool of 8 tokens" in done.stderr


# What a serving process has no use for; a fault that is not there cannot be switched on.
NOT_SERVED = ("faults", "world", "simulation", "verification", "replay")
SERVES = {
    "the command line": "import kvfence.cli.app",
    "the launcher": "import kvfence.cli.app\n"
    "from kvfence.serving import Machine, StartView, Surroundings, find_model, serve, usable_cpus\n"
    "from kvfence.cli.serve import serve_command\n"
    "from kvfence.serving.plan import plan_nodes",
    "a settled `kvfence serve`": "from typer.testing import CliRunner\n"
    "from kvfence.cli import app, serve\n"
    "serve._run = lambda settings: 0\n"
    "assert CliRunner().invoke(app.app, ['serve', '--fence', 'off', '--i-understand-this-leaks-data']).exit_code == 0",
    "the router's process": "import kvfence.serving.node_main, kvfence.serving.router_main",
}
NAMED = "from kvfence.kv import FenceLevel\nfrom kvfence.serving.node_decisions import node_decisions\n"


def not_served(program: str) -> list[str]:
    """What a process has, after the program, of the packages that do not serve."""
    words = f"import sys\n{program}\nprint(*(m for m in sys.modules if m.startswith('kvfence.')))"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split() if name.split(".")[1] in NOT_SERVED]


@pytest.mark.parametrize("program", SERVES.values(), ids=SERVES)
def test_what_serves_has_no_fault_and_no_model_of_itself_in_its_process(program):
    assert not_served(program) == []


def test_a_named_fault_is_seen_to_be_loaded():
    named = NAMED + "node_decisions(FenceLevel.SEALED, ('key-collision/short-key',))"
    assert "kvfence.faults" in not_served(named)
