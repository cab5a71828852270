"""Ollama: what is loaded counts, not what a model declares."""

from tests.audit.hearing import figures, node
from tests.audit.readers.samples import OLLAMA_CLI, OLLAMA_PS


def test_the_least_of_the_loaded_models():
    one = node(pages={"/api/version": {"version": "0.32.9"}, "/api/ps": OLLAMA_PS})
    assert figures(one) == {"pool_tokens": 4096, "context_tokens": 4096, "largest_request_tokens": 4096}
    assert (one.reading.version, one.judgement.limit_tokens) == ("0.32.9", 4096)


def test_declared_and_loaded_on_the_command_line():
    one = node(*OLLAMA_CLI)
    assert figures(one) == {
        "advertised_tokens": 40960,
        "pool_tokens": 4096,
        "context_tokens": 40960,
        "largest_request_tokens": 4096,
    }
    assert (one.judgement.verdict, one.judgement.limit_tokens) == ("lowered", 4096)


def test_what_is_loaded_in_part_on_the_processor():
    one = node("a:14b    0a1b2c3d4e5f    9.6 GB    48%/52% CPU/GPU     8192       4 minutes from now")
    assert (figures(one)["pool_tokens"], one.judgement.verdict) == (8192, "ok")


def test_the_column_as_it_is_quoted():
    one = node("CONTEXT 32768", "prompt eval count:    32770 token(s)")
    assert (one.reading.engine, figures(one)["pool_tokens"]) == ("ollama", 32768)


def test_nothing_loaded_is_unknown():
    one = node(pages={"/api/version": {"version": "0.32.9"}, "/api/ps": {"models": []}})
    assert (figures(one), one.judgement.verdict) == ({}, "unknown")
    assert "no model is loaded" in one.reading.notes[0]
