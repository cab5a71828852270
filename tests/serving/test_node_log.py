"""What of a node's log reaches the operator, and that a log stays small."""

from kvfence.serving import node_log
from kvfence.serving.node_log import NodeLog


def append(path, words: str) -> None:
    with path.open("a") as file:
        file.write(words)


def test_warnings_and_worse_are_shown_once_under_the_nodes_name(tmp_path):
    path = tmp_path / "decode-0.log"
    log = NodeLog("decode-0", path)
    assert log.warnings() == [], "there is no file yet"
    append(path, "timestamp='2026' level='info' node='decode-0' event='ready'\n")
    append(path, "timestamp='2026' level='warning' node='decode-0' event='writer cut' proof='proven'\n")
    append(path, '{"level": "error", "event": "json too"}\n')
    append(path, "Traceback (most recent call last): level of detail\n")
    assert log.warnings() == [
        "decode-0: event='writer cut' proof='proven'",
        'decode-0: {"level": "error", "event": "json too"}',
    ]
    assert log.warnings() == []


def test_a_line_in_pieces_is_put_together(tmp_path):
    path = tmp_path / "a.log"
    log = NodeLog("a", path)
    append(path, "level='warn")
    assert log.warnings() == []
    append(path, "ing' event='x'\n")
    assert log.warnings() == ["a: event='x'"]


def test_the_tail_is_the_last_lines(tmp_path):
    path = tmp_path / "a.log"
    log = NodeLog("a", path)
    assert log.tail() == ""
    append(path, "".join(f"line {number}\n" for number in range(100)))
    assert log.tail().splitlines()[0] == "line 80"
    assert log.tail().splitlines()[-1] == "line 99"


def test_a_large_log_is_emptied_and_its_end_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(node_log, "LOG_BYTES_MAX", 100)
    path = tmp_path / "a.log"
    log = NodeLog("a", path)
    append(path, "x" * 150 + "\nlast\n")
    assert log.warnings() == []
    assert path.stat().st_size == 0
    assert (tmp_path / "a.log.old").read_text().endswith("last")
    append(path, "level='error' event='after'\n")
    assert log.warnings() == ["a: event='after'"]
