"""docs/verification.md has the table that docs/verification.json holds, of every scope there is."""

import importlib.util
import json

import pytest
from tests.house.source import ROOT

from kvfence.cli.verify_record import outcome
from kvfence.protocol.decisions import CORRECT
from kvfence.verification import LISTS, SCOPES, search
from kvfence.verification.catalogue import UNSEEN

DATA = json.loads((ROOT / "docs" / "verification.json").read_text(encoding="utf-8"))
AGAIN = ("smoke", "late-writer", "steps", "limits")
COMMAND = "run `kvfence verify --scope NAME --record docs/verification.json`, then docs/make_verification.py"


@pytest.fixture(scope="module")
def script():
    place = ROOT / "docs" / "make_verification.py"
    spec = importlib.util.spec_from_file_location("make_verification", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(script):
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    assert script.page(text, DATA) == text, "run docs/make_verification.py"


def test_what_is_kept_is_what_the_scopes_say_now():
    assert set(LISTS["test"]) <= set(DATA) <= set(LISTS["full"]), COMMAND
    for name, kept in DATA.items():
        depth = SCOPES[name].depth
        assert kept["ended"] == ("closed" if depth is None else "depth"), COMMAND
        assert depth in (None, kept["depth"]), COMMAND


def test_a_scope_that_was_not_run_to_its_end_is_shown_as_that(script):
    lacking = [name for name in LISTS["full"] if name not in DATA]
    assert set(UNSEEN) == {name for name in lacking if SCOPES[name].depth is None}
    assert script.table(DATA).count("not run to its end yet") == len(lacking)
    assert script.table({}).count("not run to its end yet") == len(LISTS["full"])


def test_nothing_was_stranded_and_no_walk_was_lost():
    for name, kept in DATA.items():
        assert not (kept.get("stranded") or kept.get("livelock") or kept.get("lost")), name


@pytest.mark.parametrize("name", AGAIN)
def test_a_scope_that_is_searched_again_comes_to_the_same(name):
    now = outcome(search(SCOPES[name], CORRECT, ways_home=True))
    same = {key for key in now if key not in ("seconds", "peak_mib")}
    assert {key: now[key] for key in same} == {key: DATA[name][key] for key in same}, COMMAND


def test_what_is_not_well_is_shown_in_bold(script):
    kept = DATA["smoke"]
    data = {"smoke": kept | {"stranded": 3}, "two-by-two": DATA["two-by-two"] | {"lost": True}}
    shown = script.table(data)
    assert "**not from every state**" in shown
    assert "**a walk is lost**" in shown
    assert "**not closed**: depth" in shown
