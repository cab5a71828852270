"""No file names a registry or a machine; the Makefile and CI have what the README promises."""

import re

import pytest
from tests.house.source import ROOT, kept_files
from tests.house.tracked import BINARY_SUFFIXES, REGISTRY_HOSTS, unwanted_words

TARGETS = {"serve", "test", "test-slow", "lint", "bench", "docs", "env", "clean"}
MAKEFILE = (ROOT / "Makefile").read_text()


def test_no_file_names_a_registry_or_a_machine():
    texts = [file for file in kept_files() if file.suffix not in BINARY_SUFFIXES]
    assert len(texts) > 50, "the files were found"
    found = []
    for file in texts:
        name = file.relative_to(ROOT).as_posix()
        found += unwanted_words(name, file.read_text("utf-8", errors="replace"))
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        *(f"see https://{host}/simple" for host in REGISTRY_HOSTS),
        "cd " + "/ro" + "ot/x",
        'path = "' + "/wo" + 'rk/main"',
        "/ho" + "me/somebody/x",
        "pip install --index" + "-url x",
    ],
)
def test_an_unwanted_word_is_found(line):
    assert list(unwanted_words("x", line))


@pytest.mark.parametrize(
    "line", ["a/root/b", "work/main", "https://example.org/home", "src/kvfence/work.py", "~/.cache/kvfence"]
)
def test_other_words_are_left_alone(line):
    assert list(unwanted_words("x", line)) == []


def test_the_makefile_has_its_targets_and_they_are_no_files():
    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
    assert targets >= TARGETS
    assert phony >= TARGETS


def test_the_version_of_torch_is_one_variable():
    assert re.search(r"^TORCH_VERSION \?= \d+\.\d+\.\d+$", MAKEFILE, re.MULTILINE)
    assert len(re.findall(r"TORCH_VERSION\s*[?:+]?=", MAKEFILE)) == 1
    assert "'torch==$(TORCH_VERSION)'" in MAKEFILE


def test_ci_runs_the_tests_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text()
