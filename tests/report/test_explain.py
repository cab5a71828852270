"""Explanations: everything of the entry is in them, as text and as data."""

import io

from rich.console import Console

from kvfence.report.codes import CODES
from kvfence.report.explain import code_as_data, codes_as_data, explanation, listing, reference_line


def test_an_explanation_holds_the_whole_entry():
    code = CODES["KVF219"]
    words = explanation("kvf219").plain
    assert words.startswith("KVF219: A stale hand-off was accepted\nseverity: critical\n")
    for part in (code.what, code.why, code.mend, "https://github.com/vllm-project/vllm/issues/52234"):
        assert part in words


def test_a_reference_is_a_line_with_its_address():
    assert reference_line("CWE-416") == (
        "CWE-416: Use After Free (https://cwe.mitre.org/data/definitions/416.html)"
    )
    assert reference_line("https://example.org/a") == "https://example.org/a"


def test_all_are_listed():
    out = io.StringIO()
    Console(file=out, width=100).print(listing())
    assert [line.split()[0] for line in out.getvalue().splitlines()[1:-1]] == list(CODES)


def test_the_same_as_data():
    assert [entry["code"] for entry in codes_as_data()["codes"]] == list(CODES)
    data = code_as_data("KVF101")
    assert data["severity"] == "critical"
    assert {
        "name": "CWE-226",
        "title": "Sensitive Information in Resource Not Removed Before Reuse",
        "url": "https://cwe.mitre.org/data/definitions/226.html",
    } in data["references"]
