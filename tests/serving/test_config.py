"""Settings: what beats what, what is refused, and what a refusal says."""

import dataclasses
from pathlib import Path

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.serving.config import KEYS, RULES, ServeConfig, check_context, load_config


def toml(tmp_path, words: str):
    path = tmp_path / "kvfence.toml"
    path.write_text(words)
    return path


def test_defaults_are_the_designs():
    settings = load_config({})
    assert settings == ServeConfig()
    assert (settings.host, settings.port, settings.fence) == ("127.0.0.1", 8000, "sealed")
    assert (settings.prefill, settings.decode, settings.batch_size, settings.chunk_tokens) == (1, 1, 16, 1024)
    assert not settings.is_unsafe


def test_every_field_has_a_rule_and_its_default_obeys_it():
    assert set(RULES) == {field.name for field in dataclasses.fields(ServeConfig)}
    for field in dataclasses.fields(ServeConfig):
        assert RULES[field.name](field.name, field.default) == field.default


def test_a_flag_beats_the_file_and_the_file_beats_the_default(tmp_path):
    path = toml(tmp_path, 'port = 9000\nprefill = 2\ndtype = "fp32"\n')
    settings = load_config({"port": 7000, "decode": None}, config=path)
    assert (settings.port, settings.prefill, settings.decode, settings.dtype) == (7000, 2, 1, "float32")


def test_an_own_pool_beats_the_common_one():
    settings = load_config({"pool_tokens": 100, "decode_pool_tokens": 300})
    assert (settings.pool_tokens_of("prefill"), settings.pool_tokens_of("decode")) == (100, 300)


def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path):
    with pytest.raises(OperatorError, match="did you mean 'pool_tokens'"):
        load_config({}, config=toml(tmp_path, "pool_token = 3"))
    with pytest.raises(OperatorError, match=r"no setting of kvfence serve: known are"):
        load_config({}, config=toml(tmp_path, "zzz = 3"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("port = ", "is not TOML"),
        ("port = 'x'", "whole number from 0 to 65,535"),
        ("prefill = true", "whole number"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, words, said):
    with pytest.raises(OperatorError, match=said):
        load_config({}, config=toml(tmp_path, words))


def test_a_missing_or_huge_or_binary_file_is_refused(tmp_path):
    with pytest.raises(OperatorError, match="is not there"):
        load_config({}, config=tmp_path / "none.toml")
    huge = toml(tmp_path, "#" * (1 << 21))
    with pytest.raises(OperatorError, match="too many for settings"):
        load_config({}, config=huge)
    huge.write_bytes(b"\xff\xfe")
    with pytest.raises(OperatorError, match="is not TOML"):
        load_config({}, config=huge)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("prefill", 0, "from 1 to 64"),
        ("port", 65_536, "65,535"),
        ("dtype", "bf61", "did you mean 'bf16'|one of"),
        ("dtype", 16, "one of"),
        ("fence", "seald", "did you mean 'sealed'"),
        ("transport", "rdma", "one of shm, tcp"),
        ("context", "lots", '"fit"'),
        ("context", 1, '"fit"'),
        ("context", True, '"fit"'),
        ("request_timeout_s", float("nan"), "number of seconds"),
        ("request_timeout_s", "5", "number of seconds"),
        ("quarantine_share_max", 0, "share above 0"),
        ("prefix_cache", 1, "true or false"),
        ("model", " ", "not empty"),
        ("api_keys", "/nowhere/keys.toml", "no such file"),
        ("api_keys", 3, "path of a file"),
        ("unsafe_faults", "one", "list of names"),
        ("pool_tokens", -1, "whole number from 1"),
    ],
)
def test_a_bad_value_says_what_would_be_right(name, value, said):
    with pytest.raises(OperatorError, match=said):
        load_config({name: value})


@pytest.mark.parametrize(("value", "wanted"), [("fit", "fit"), ("4096", 4096), (4096, 4096), (None, None)])
def test_a_context_is_a_number_or_fit_or_the_models_own(value, wanted):
    assert load_config({"context": value}).context == wanted


def test_a_context_larger_than_a_pool_says_both_numbers_and_both_ways_out():
    with pytest.raises(OperatorError, match=r"1,000 .* 999 .*--pool-tokens to at least 1000.*--context fit"):
        load_config({"context": 1000, "pool_tokens": 5000, "decode_pool_tokens": 999})
    assert load_config({"context": 1000, "pool_tokens": 1000}).context == 1000
    assert load_config({"context": "fit", "pool_tokens": 10}).context == "fit"
    check_context(10, None, "prefill-0")


@pytest.mark.parametrize(
    "unsafe", [{"fence": "off"}, {"unsafe_faults": ("free-on-timeout",)}, {"unsafe_without": ("seal",)}]
)
def test_what_leaks_is_wanted_twice(unsafe):
    with pytest.raises(OperatorError, match="--i-understand-this-leaks-data"):
        load_config(unsafe)
    settings = load_config({**unsafe, "i_understand_this_leaks_data": True})
    assert settings.is_unsafe
    assert not load_config({"i_understand_this_leaks_data": True}).is_unsafe


def test_an_unknown_fault_is_refused_with_a_suggestion():
    known = ("free-on-timeout", "short-transfer")
    wanted = {"unsafe_faults": ("fre-on-timeout",), "i_understand_this_leaks_data": True}
    with pytest.raises(OperatorError, match="did you mean 'free-on-timeout'"):
        load_config(wanted, known_faults=known)
    assert load_config(wanted).unsafe_faults == ("fre-on-timeout",)
    wanted["unsafe_faults"] = ("short-transfer", "short-transfer")
    assert load_config(wanted, known_faults=known).unsafe_faults == ("short-transfer",)


def test_an_unknown_layer_is_refused_with_a_suggestion():
    wanted = {"unsafe_without": ("sael",), "i_understand_this_leaks_data": True}
    with pytest.raises(OperatorError, match="no layer that kvfence knows: did you mean 'seal'"):
        load_config(wanted, known_layers=("seal", "guard"))
    wanted["unsafe_without"] = ("seal", "guard")
    assert load_config(wanted, known_layers=("seal", "guard")).unsafe_without == ("seal", "guard")


def test_the_key_of_faults_is_their_flag(tmp_path):
    path = toml(tmp_path, 'unsafe_fault = ["x"]')
    assert load_config({"i_understand_this_leaks_data": True}, config=path).unsafe_faults == ("x",)
    assert "unsafe_fault" in KEYS
    with pytest.raises(OperatorError, match="did you mean 'unsafe_fault'"):
        load_config({}, config=toml(tmp_path, "unsafe_faults = []"))


@pytest.mark.parametrize("said", ["true", "false"])
def test_that_data_leaks_is_understood_on_the_command_line_alone(tmp_path, said):
    path = toml(tmp_path, f"i_understand_this_leaks_data = {said}")
    with pytest.raises(OperatorError, match="on the command line"):
        load_config({}, config=path)


def test_one_late_hello_is_no_death():
    with pytest.raises(OperatorError, match="at least twice"):
        load_config({"lost_after_s": 1.5})
    assert load_config({"lost_after_s": 2.0}).lost_after_s == 2.0


def test_a_trace_is_an_absolute_path_in_a_directory_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_config({"trace": Path("run.jsonl")}).trace == tmp_path / "run.jsonl"
    for bad, said in ((tmp_path, "is a directory"), (tmp_path / "no" / "x", "there is no directory")):
        with pytest.raises(OperatorError, match=said):
            load_config({"trace": bad})
    with pytest.raises(OperatorError, match="the path of a file"):
        load_config({}, config=toml(tmp_path, "trace = 3"))
