"""What the operator names: addresses, logs, saved answers, standard input; seen by content, read within bounds."""

import io
import json

import pytest
from tests.audit.readers.samples import SGLANG_FINAL, SGLANG_INFO, SGLANG_METRICS

from kvfence.audit import sources
from kvfence.audit.sources import looks_saved, read_log, read_saved, read_stream, scan_stream, spec_of
from kvfence.protocol.errors import OperatorError


def test_words_of_the_command_line(tmp_path):
    log, saved = tmp_path / "node.log", tmp_path / "info.txt"
    log.write_text(SGLANG_FINAL)
    saved.write_text(json.dumps(SGLANG_INFO))
    assert spec_of("-").reads_stdin
    address = spec_of("http://host:30000/v1")
    assert (address.name, address.url) == ("host:30000", "http://host:30000/v1")
    assert (spec_of(str(log)).name, spec_of(str(log)).log) == ("node.log", log)
    assert (spec_of(str(saved)).saved, spec_of(str(saved)).log) == ((saved,), None)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("host:30000", "write http://host:30000"),
        ("nothing.log", "is not there: name a URL, a log"),
        ("ftp://host", "is not there"),
        (".", "is no file"),
        ("deployment.toml", "give it with --deployment deployment.toml"),
    ],
)
def test_words_that_name_nothing(word, said):
    with pytest.raises(OperatorError, match=said):
        spec_of(word)


@pytest.mark.parametrize(
    ("body", "is_saved"),
    [
        (b'{"a": 1}', True),
        (b'  [{"a": 1}]', True),
        (SGLANG_METRICS.encode(), True),
        (b'{"log":"a"}\n{"log":"b"}\n', False),
        (b"[2026-01-01] start", False),
        (b"max_total_num_tokens=1", False),
        (b"", False),
    ],
)
def test_saved_answers_are_told_from_logs_by_their_content(body, is_saved):
    assert looks_saved(body) is is_saved


def test_a_saved_answer_says_its_file(tmp_path):
    path = tmp_path / "info.json"
    path.write_text('{"a": 1}')
    assert (read_saved(path).origin, read_saved(path).path) == ("info.json", None)
    for read in (read_saved, read_log):
        with pytest.raises(OperatorError, match="cannot be read"):
            read(tmp_path / "none")


def test_a_log_is_scanned_with_the_lines_of_the_file(tmp_path):
    path = tmp_path / "node.log"
    path.write_text(f"hello\n\x1b[1m{SGLANG_FINAL}\x1b[0m\n")
    (log,) = read_log(path)
    (hits,) = log.starts["sglang"]
    assert (log.name, hits.log, hits.latest("final").line) == (str(path), str(path), 2)
    assert hits.latest("final").groups["n"] == "1086464"


def test_each_container_in_a_log_is_a_log_of_its_own(monkeypatch):
    text = f"[pod/prefill-0/s] {SGLANG_FINAL}\n[pod/decode-0/s] {SGLANG_FINAL.replace('1086464', '7')}\n"
    logs = scan_stream("x", [text.encode()])
    assert [(log.name, log.starts["sglang"][0].latest("final").groups["n"]) for log in logs] == [
        ("prefill-0/s", "1086464"),
        ("decode-0/s", "7"),
    ]
    more = f"{text}[pod/silent-0/s] hello\n"
    assert [log.name for log in scan_stream("x", [more.encode()])] == [
        "prefill-0/s",
        "decode-0/s",
        "silent-0/s",
    ]
    monkeypatch.setattr(sources, "WHOSE_MAX", 1)
    (log,) = scan_stream("x", [text.encode()])
    assert log.doubt == "1 more pods or containers wrote into it than the 1 that were looked at"


@pytest.mark.parametrize(
    ("text", "is_doubted"),
    [("context_len=104", True), ("context_len=104\n", False), ("context_len=104, x", False)],
)
def test_a_log_that_ends_at_a_number_may_have_been_cut_there(text, is_doubted):
    (log,) = scan_stream("x", [b"start\n", text.encode()])
    assert (log.doubt is not None) is is_doubted


def test_a_log_has_a_bound_that_is_said():
    line = f"{SGLANG_FINAL}\n".encode()
    most = len(line) + line.index(b"1086464") + 3
    (log,) = scan_stream("x", [line] * 2, bytes_max=most)
    assert log.notes == (f"only the first {most:,} bytes were read",)
    assert log.starts["sglang"][0].latest("final").groups["n"] == "1086464", "not the half of it"
    (whole,) = scan_stream("x", [SGLANG_FINAL.encode()])
    assert whole.notes == ()


def test_an_empty_log_says_so():
    (log,) = scan_stream("x", [])
    assert log.notes == ("it is empty",)


def test_standard_input_is_a_log_or_one_saved_answer(monkeypatch):
    pages, logs = read_stream(io.BytesIO(SGLANG_FINAL.encode()), "standard input")
    assert (pages, logs[0].starts["sglang"][0].has("final")) == ((), True)
    pages, logs = read_stream(io.BytesIO(json.dumps(SGLANG_INFO).encode()), "standard input")
    assert (pages[0].data["page_size"], logs) == (16, ())
    monkeypatch.setattr(sources, "PAGE_BYTES_MAX", 4)
    pages, logs = read_stream(io.BytesIO(SGLANG_FINAL.encode()), "standard input")
    assert logs[0].starts["sglang"][0].has("final")


@pytest.mark.parametrize(
    "word",
    ["http://me:s3cret@host:1", "https://s3cret@host", "http://host/v1?api_key=s3cret", "http://host#s3cret"],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(word):
    with pytest.raises(OperatorError, match=r"is given as a url with a .*: take it out of the url") as raised:
        spec_of(word)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "word", ["htp://me:s3cret@host:1", "http://me:s3cret@host:99999", "me:s3cret@host:1"]
)
def test_a_password_in_an_address_that_is_none_is_not_repeated(word):
    with pytest.raises(OperatorError) as raised:
        spec_of(word)
    assert "s3cret" not in str(raised.value)
