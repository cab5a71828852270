"""The list of scenarios: each file's is in it, under its own name, with what a report needs, and a cost."""

import importlib.util
from pathlib import Path

import pytest
from tests.check.scripted_bench import plain_known
from tests.house.source import ROOT

import kvfence.check.scenarios as package
from kvfence.check.scenario import Hazard, Size
from kvfence.check.scenarios import SCENARIOS
from kvfence.faults.classes import ROOT_CAUSES
from kvfence.report.codes import CODES

FOLDER = Path(package.__file__).parent


def test_every_file_with_a_scenario_is_in_the_list():
    names = {
        path.stem.replace("_", "-")
        for path in FOLDER.glob("*.py")
        if "\nSCENARIO = " in path.read_text(encoding="utf-8")
    }
    assert names == set(SCENARIOS)


def test_the_cheapest_comes_first_and_what_harms_others_late():
    hazards = [scenario.hazard for scenario in SCENARIOS.values()]
    assert next(iter(SCENARIOS)) == "one-word"
    first_harmful = min(index for index, one in enumerate(hazards) if one is Hazard.MAY_HARM_OTHERS)
    assert Hazard.ORDINARY not in hazards[first_harmful:]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_report_finds_what_it_needs(name):
    scenario = SCENARIOS[name]
    assert set(scenario.classes) <= set(ROOT_CAUSES)
    assert set(scenario.codes) <= set(CODES)
    assert scenario.what
    assert scenario.oracle
    assert scenario.control


@pytest.mark.parametrize("name", SCENARIOS)
def test_more_rounds_never_cost_less(name):
    one, two = (SCENARIOS[name].cost(plain_known(), Size(rounds=rounds)) for rounds in (1, 2))
    assert one.requests <= two.requests
    assert one.prompt_tokens <= two.prompt_tokens
    assert one.seconds <= two.seconds


def test_the_table_in_the_document_is_up_to_date():
    place = ROOT / "docs" / "make_scenarios.py"
    spec = importlib.util.spec_from_file_location("make_scenarios", place)
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    text = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    assert make.page(text) == text, "run docs/make_scenarios.py"
    assert make.page(text.replace("`one-word`", "`two-words`")) == text
