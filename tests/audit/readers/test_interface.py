"""Every reader is held to what all of them must do."""

import pytest
from tests.audit.readers import conformance
from tests.audit.readers.samples import SAMPLES, Own

from kvfence.audit.log_scan import Hit
from kvfence.audit.page import page_of
from kvfence.audit.readers import GENERIC, READERS
from kvfence.audit.readers.interface import Reader, form, smallest, version_answer

EACH = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.engine)


def test_every_reader_has_samples():
    assert set(SAMPLES) == {reader.engine for reader in READERS}


@EACH
def test_it_does_what_every_reader_must(reader):
    others = [samples for engine, samples in SAMPLES.items() if engine != reader.engine]
    conformance.hold(reader, SAMPLES[reader.engine], others)


def test_the_reader_of_the_unknown_never_raises_and_owns_nothing():
    own = Own((("/v1/capacity", {"engines": [{"max_model_len": 1, "kv_cache_capacity_tokens": 2}]}),))
    conformance.never_raises(GENERIC, own)
    conformance.nothing_is_read_from_nothing(GENERIC)
    for samples in SAMPLES.values():
        conformance.recognises_no_others(GENERIC, samples)


def test_the_suite_finds_a_reader_that_guesses():
    """What raises, claims what is others', or reads from nowhere does not pass."""
    greedy = Reader("greedy", (), lambda page: True, lambda material: 1 // 0)
    with pytest.raises(AssertionError):
        conformance.recognises_no_others(greedy, SAMPLES["vllm"])
    with pytest.raises(ZeroDivisionError):
        conformance.check(greedy, conformance.page(*SAMPLES["vllm"].pages[0]))


def test_a_version_is_believed_only_where_it_was_asked_for():
    body = b'{"version": "1.2.3"}'
    assert version_answer(page_of("/version", "", body)) == "1.2.3"
    assert version_answer(page_of(None, "x.json", body)) is None


def test_the_smallest_of_lines_leaves_out_what_is_no_number():
    hits = [Hit(1, "", {"n": "7"}), Hit(2, "", {"n": "x"}), Hit(3, "", {"n": "5"}), Hit(4, "", {})]
    found = smallest(hits, "n", lambda text: int(text) if str(text).isdigit() else None)
    assert found is not None and found[0].line == 3 and found[1] == 5
    assert smallest([], "n") is None


def test_a_form_keeps_what_it_was_given():
    one = form("a", "x=", r"x=(?P<n>\d+)", is_mark=False, is_identity=True)
    assert (one.is_mark, one.is_start, one.is_identity) == (False, False, True)
