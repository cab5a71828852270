"""Who reads: whoever has the most marks; pages first; nobody where two have as many."""

from tests.audit.readers import conformance
from tests.audit.readers.samples import SAMPLES

from kvfence.audit.readers import GENERIC, READERS, all_forms, recognise, scan_of


def test_every_reader_is_registered_under_its_own_name():
    assert set(all_forms()) == {reader.engine for reader in (*READERS, GENERIC)}
    assert len(all_forms()) == len(READERS) + 1


def test_one_scan_looks_for_everybodys_forms():
    scan = scan_of("x.log")
    for lines in (SAMPLES["vllm"].logs[0], SAMPLES["lmdeploy"].logs[0]):
        for line in lines:
            scan.feed(line, 1)
    found = {reader.engine for reader in READERS if scan.starts(reader.engine, reader.forms)[-1].by_form}
    assert found == {"vllm", "lmdeploy"}


def test_two_engines_with_as_many_marks_are_nobody():
    both = [conformance.page("/metrics", "vllm:a 1\nsglang:b 1\n")]
    assert recognise(both, {}) is GENERIC
    assert recognise([], conformance.hits_of(["hello"])) is GENERIC


def test_pages_outweigh_lines():
    lines = conformance.hits_of(SAMPLES["vllm"].logs[0])
    assert recognise([conformance.page("/metrics", "sglang:b 1\n")], lines).engine == "sglang"
