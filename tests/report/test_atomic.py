"""A file is written whole or not at all, for its owner alone."""

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.report.atomic import check_places, write_atomically


def test_a_file_is_replaced_whole_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_atomically(path, "new ü\n")
    assert path.read_text(encoding="utf-8") == "new ü\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_text_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_place_that_is_none_is_an_operators_error(tmp_path):
    with pytest.raises(OperatorError, match=r"cannot write .*name another place"):
        write_atomically(tmp_path / "nowhere" / "report.html", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OperatorError, match="cannot write"):
        write_atomically(tmp_path / "folder", "x")
    assert len(list(tmp_path.iterdir())) == 1


def test_places_are_looked_at_before_a_run(tmp_path):
    check_places([tmp_path / "new.json"])
    for path in (tmp_path, tmp_path / "not" / "there.json"):
        with pytest.raises(OperatorError, match="cannot write"):
            check_places([path])
    assert list(tmp_path.iterdir()) == []
