"""The list of equivalent mutants is true, and the page of the score is current."""

import pytest

from tests.mutants import equivalents
from tests.mutants.__main__ import summary
from tests.mutants.mutations import all_mutations, chosen
from tests.mutants.page import PAGE, fingerprint, page
from tests.mutants.runner import Fate, Verdict

NAME = "decode:RESERVED/ABORT drop"
ENTRY = f'[[equivalent]]\nmutants = ["{NAME}"]\nreason = "why"\n'


def verdict(fate, *, by="", tests_run=3):
    return Verdict(chosen(all_mutations(), [NAME])[0], fate, by, tests_run)


def listed(tmp_path, text):
    path = tmp_path / "equivalent.toml"
    path.write_text(text)
    return equivalents.read(path)


def test_the_list_names_mutants_alone():
    assert list(equivalents.strangers(equivalents.read(), all_mutations())) == []
    (fault,) = equivalents.strangers({"decode:RESERVED/ABORT away": "why"}, all_mutations())
    assert "decode:RESERVED/ABORT away, which is no mutant" in fault


def test_an_entry_has_a_name_and_a_reason_once(tmp_path):
    assert listed(tmp_path, "") == {}
    assert listed(tmp_path, ENTRY) == {NAME: "why"}
    for text in (
        ENTRY + ENTRY,
        ENTRY.replace('"why"', '" "'),
        ENTRY.replace("reason", "because"),
        ENTRY.replace(f'"{NAME}"', ""),
    ):
        with pytest.raises(ValueError, match="twice" if text == ENTRY + ENTRY else "must have"):
            listed(tmp_path, text)


def test_a_survivor_is_a_fault_unless_it_is_listed():
    survivor = verdict(Fate.SURVIVED)
    (fault,) = equivalents.faults({}, [survivor])
    assert fault.startswith(f"{NAME} survives (3 tests take its row)")
    (fault,) = equivalents.faults({}, [verdict(Fate.SURVIVED, tests_run=0)])
    assert "no test takes its row" in fault
    assert list(equivalents.faults({NAME: "why"}, [survivor])) == []


def test_a_listed_one_that_is_killed_is_a_fault():
    killed = verdict(Fate.KILLED, by="test_x (call)\nassert 1 == 2")
    assert list(equivalents.faults({}, [killed, verdict(Fate.HUNG)])) == []
    (fault,) = equivalents.faults({NAME: "why"}, [killed])
    assert fault == f"{NAME} is listed as equivalent and was killed, by test_x (call): take it out"


def test_the_score_leaves_the_equivalent_ones_out_and_counts_a_hang_as_a_kill():
    verdicts = [verdict(Fate.KILLED), verdict(Fate.HUNG), verdict(Fate.SURVIVED)]
    assert summary(verdicts, {NAME: "why"}) == (
        "3 mutants: 2 killed (1 of them hung), 1 equivalent, 0 survive: 100.0 %"
    )
    assert summary(verdicts, {}).endswith("0 equivalent, 1 survive: 66.7 %")


# ---------------------------------------------------------------- docs/mutants.md
def test_the_page_is_up_to_date():
    current = page(all_mutations(), equivalents.read())
    assert PAGE.read_text(encoding="utf-8") == current, "run `make mutants`"


def test_a_changed_row_or_list_makes_the_page_stale():
    mutations = all_mutations()
    assert page(mutations[1:], {}) != page(mutations, {})
    assert fingerprint(mutations[1:]) != fingerprint(mutations)
    with_one = page(mutations, {NAME: "why"})
    assert f"1. why `{NAME}`." in with_one
    assert f"{len(mutations) - 1:,} of {len(mutations):,} mutants killed, 1 equivalent" in with_one
