"""A start that cannot be: exit code 2, what is wrong, why, and what to do; nothing is left behind."""

import json
import os
import shutil
import socket
import subprocess
import sys

import pytest

from kvfence.engine.loading import resolve_model as default_model

pytestmark = pytest.mark.e2e

START_SECONDS_MAX = 180


@pytest.fixture
def refused(tmp_path_factory):
    """Start with flags, see it refused, and return what it said in one line."""
    # The name is short: a socket's address has little room.
    return lambda *flags: _refused(tmp_path_factory.mktemp("k"), *flags)


def _refused(home, *flags) -> str:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(home), "COLUMNS": "400"}
    if "--model" in flags:  # what is remembered of a broken model is no use to anybody
        environment["XDG_CACHE_HOME"] = str(home / "cache")
    done = subprocess.run(
        [sys.executable, "-m", "kvfence", "serve", "--port", "0", *map(str, flags)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "Traceback" not in said, said
    base = home / "kvfence"
    assert not base.exists() or [entry for entry in base.iterdir() if entry.is_dir()] == []
    return " ".join(said.split())


# ------------------------------------------------------------ law 6


def test_a_context_larger_than_the_pool_says_both_numbers_and_both_ways_out(refused):
    said = refused("--context", 4096, "--pool-tokens", 2048)
    assert "the context of 4,096 tokens is larger than" in said
    assert "pool of 2,048 tokens" in said
    assert "raise --pool-tokens to at least 4096" in said
    assert "lower --context to at most 2048" in said


def test_the_smaller_of_two_pools_counts(refused):
    said = refused("--context", 1024, "--prefill-pool-tokens", 1024, "--decode-pool-tokens", 512)
    assert "the context of 1,024 tokens is larger than the decode pool of 512 tokens" in said


def test_the_models_own_context_is_compared_too(refused):
    said = refused("--pool-tokens", 2048)
    assert "the context of 8,192 tokens is larger than the prefill-0 pool of 2,048 tokens" in said


def test_a_context_longer_than_the_models_is_refused(refused):
    said = refused("--context", 9000, "--pool-tokens", 9000)
    assert "9,000 tokens is longer than the 8,192 tokens that smollm2-135m-instruct was made for" in said


# ------------------------------------------------------------ flags


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--dtype", "float31"], "dtype is 'float31', which is not allowed"),
        (["--prefill", "0"], "prefill is 0"),
        (["--transport", "smh"], "did you mean 'shm'?"),
        (["--context", "many"], "context is 'many'"),
        (["--contxt", "512"], "No such option: --contxt"),
        (["--lost-after-s", "1", "--hello-interval-s", "1"], "at least twice hello_interval_s"),
        (["--api-keys", "nowhere.toml"], "there is no such file"),
        (["--fence", "off"], "fence = off lets one tenant read another's data"),
    ],
)
def test_a_bad_flag_is_named(refused, flags, words):
    assert words in refused(*flags)


def test_a_config_file_is_checked_by_the_same_rules(refused, tmp_path):
    config = tmp_path / "kvfence.toml"
    config.write_text("contxt = 512\n")
    assert "sets 'contxt', which is no setting of kvfence serve: did you mean 'context'?" in refused(
        "--config", config
    )


# ------------------------------------------------------------ faults


def test_an_unknown_fault_is_refused_with_a_suggestion(refused):
    said = refused("--unsafe-fault", "rejected-continues/splitstate", "--i-understand-this-leaks-data")
    assert "did you mean 'rejected-continues/split-state'?" in said


def test_a_fault_is_wanted_twice(refused):
    said = refused("--unsafe-fault", "rejected-continues/split-state")
    assert "an unsafe fault lets one tenant read another's data" in said
    assert "--i-understand-this-leaks-data" in said


# ------------------------------------------------------------ what only a node finds out


def test_a_port_in_use_is_named(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("--port", port, "--context", 512, "--pool-tokens", 512)
    assert f"router cannot start: cannot listen on 127.0.0.1 port {port}" in said
    assert "choose another --port" in said


def test_a_keys_file_that_makes_no_sense_is_named(refused, tmp_path):
    keys = tmp_path / "keys.toml"
    keys.write_text("[[key]]\ntenant = 7\n")
    said = refused("--api-keys", keys, "--context", 512, "--pool-tokens", 512)
    assert "router cannot start:" in said
    assert "keys.toml" in said


# ------------------------------------------------------------ models


def test_a_model_that_is_not_there(refused):
    assert "there is no model at /nowhere/model" in refused("--model", "/nowhere/model")


def test_a_folder_that_holds_no_model(refused, tmp_path):
    folder = tmp_path / "empty-model"
    folder.mkdir()
    assert "empty-model is no model folder: it has no config.json" in refused("--model", folder)


def test_a_file_that_is_no_gguf(refused, tmp_path):
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF but not really")
    said = refused("--model", file)
    assert "the model cannot be converted" in said
    assert "broken.gguf" in said


def test_a_model_that_cannot_run_right_is_refused_with_the_reason(refused, tmp_path):
    folder = tmp_path / "dynamic-model"
    folder.mkdir()
    # Whole but for its weights: the config alone says that one request would change another's answer.
    for file in default_model().path.iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, folder)
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"")
    said = refused("--model", folder, "--context", 512, "--pool-tokens", 512)
    assert "cannot be served: its rotary embedding is 'dynamic'" in said
