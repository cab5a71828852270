"""TGI: the pool is what the warm-up measured, and 16,000 is not it."""

from tests.audit.hearing import figures, node
from tests.audit.readers.samples import TGI_INFO, TGI_LOG


def test_info():
    one = node(pages={"/info": TGI_INFO})
    assert figures(one) == {"context_tokens": 8192, "advertised_tokens": 8192, "pool_tokens": 43520}
    assert (one.reading.version, one.judgement.verdict) == ("3.0.1", "ok")


def test_the_default_is_not_a_pool():
    one = node(pages={"/info": {**TGI_INFO, "max_batch_total_tokens": 16000}})
    assert ("pool_tokens" in figures(one), one.judgement.verdict) == (False, "unknown")
    assert "its default of 16,000" in one.reading.notes[0]


def test_arguments_are_what_was_asked_for():
    one = node(TGI_LOG[0])
    assert (figures(one), one.judgement.verdict) == ({"context_tokens": 8192}, "unknown")
    assert "warm-up" in one.reading.notes[0]


def test_what_the_warm_up_measured():
    one = node(*TGI_LOG)
    assert figures(one) == {"pool_tokens": 43520, "context_tokens": 8192}
    assert one.judgement.verdict == "ok"


def test_optional_values_of_newer_arguments():
    assert figures(node("INFO text_generation_launcher: Args { max_total_tokens: Some( 4096, ), x: 1 }")) == {
        "context_tokens": 4096
    }
