"""The registry of codes: whole, with references that lead somewhere, pages that are up to date, and suggestions."""

import importlib.util
import re
import subprocess
import sys

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.report.codes import CODES, REFERENCES, address_of, code_named, title_of
from tests.house.source import ROOT

AUDIT = [f"KVF{number}" for number in range(101, 120)]
CHECK = [f"KVF{number}" for number in range(201, 220)]
BANNED = re.compile(r"\b(?:safe|safely|compliant|secure)\b", re.IGNORECASE)
MAKE = ROOT / "docs" / "make_codes.py"


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("make_codes", MAKE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_number_has_its_entry_in_order():
    assert list(CODES) == AUDIT + CHECK
    assert all(code.number == number for number, code in CODES.items())


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_an_entry_says_what_why_and_how_to_mend_in_whole_sentences(code):
    for words in (code.what, code.why, code.mend):
        assert words[0].isupper() or words.startswith(("/v1/models ", "vLLM", "llama.cpp's "))
        assert words.rstrip().endswith((".", ")"))
        assert "  " not in words
    assert not code.title.endswith(".")
    assert not BANNED.search(f"{code.title} {code.what} {code.why} {code.mend}")


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_references_lead_somewhere(code):
    assert "OWASP AISVS 5.5.5" in code.references
    assert code.weaknesses, "each has a weakness of the CWE list"
    assert len(set(code.references)) == len(code.references)
    for reference in code.references:
        assert address_of(reference).startswith("https://"), reference
        assert reference in REFERENCES or reference.startswith("https://github.com/")


def test_every_explained_reference_is_used():
    used = {reference for code in CODES.values() for reference in code.references}
    assert set(REFERENCES) <= used


def test_an_address_is_its_own_title_and_other_words_have_none():
    assert title_of("https://example.org/a") == address_of("https://example.org/a")
    assert address_of("a talk at a conference") is None
    assert title_of("CWE-416") == "Use After Free"


@pytest.mark.parametrize("name", ["KVF201", "kvf201", "201", " KVF201 "])
def test_a_code_is_found_by_its_number(name):
    assert code_named(name) is CODES["KVF201"]


def test_a_code_that_is_none_gets_a_suggestion():
    with pytest.raises(OperatorError, match="there is no code 'KVFF203': did you mean KVF203"):
        code_named("KVFF203")
    with pytest.raises(OperatorError, match="there is no code 'leak': kvfence explain lists them all"):
        code_named("leak")


def test_pages_are_up_to_date():
    assert subprocess.run([sys.executable, MAKE, "--check"], check=False).returncode == 0


def test_every_code_has_a_page_and_the_index_links_to_it(make):
    pages = make.pages()
    assert set(pages) == {"README.md", *(f"{number}.md" for number in CODES)}
    assert all(f"]({number}.md)" in pages["README.md"] for number in CODES)


def test_a_page_that_is_changed_missing_or_left_over_is_noticed(make, tmp_path):
    for name, text in make.pages().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert list(make.faults(tmp_path)) == []
    (tmp_path / "KVF101.md").write_text("changed")
    (tmp_path / "KVF102.md").unlink()
    (tmp_path / "KVF999.md").touch()
    assert list(make.faults(tmp_path)) == [
        "KVF101.md is out of date",
        "KVF102.md is missing",
        "KVF999.md is left over",
    ]
