"""docs/protocol.md says what the tables say."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def make_protocol():
    spec = importlib.util.spec_from_file_location("make_protocol", ROOT / "docs" / "make_protocol.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(make_protocol):
    assert make_protocol.PAGE.read_text(encoding="utf-8") == make_protocol.page(), "run `make docs`"


def test_a_stale_page_is_noticed(make_protocol, tmp_path, monkeypatch, capsys):
    stale = tmp_path / "protocol.md"
    monkeypatch.setattr(make_protocol, "PAGE", stale)
    monkeypatch.setattr("sys.argv", ["make_protocol.py", "--check"])
    stale.write_text("old", encoding="utf-8")
    assert make_protocol.main() == 1
    assert "make docs" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["make_protocol.py"])
    assert make_protocol.main() == 0
    monkeypatch.setattr("sys.argv", ["make_protocol.py", "--check"])
    assert make_protocol.main() == 0
