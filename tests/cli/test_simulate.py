"""`kvfence simulate`: what it prints, and how it ends."""

import re
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from kvfence.cli.app import app

FAULT = "unscrubbed-reuse/dirty-added-page"


def simulate(*arguments: str):
    return CliRunner().invoke(app, ["simulate", *arguments])


def test_a_clean_campaign_ends_well_and_sums_up():
    result = simulate("--seeds", "10")
    assert result.exit_code == 0
    for word in (
        "ends of requests",
        "probes",
        "10 seeds, 0 with findings",
        "simulated hours",
        "a real minute",
    ):
        assert word in result.output


def test_a_fault_is_found_shrunk_and_drawn(tmp_path):
    svg = tmp_path / "run.svg"
    result = simulate("--seeds", "10", "--fault", FAULT, "--svg", str(svg))
    assert result.exit_code == 1
    assert "found within" in result.output
    assert "dirty page" in result.output
    assert re.search(rf"shrunk; `kvfence simulate --seed \d --fault {FAULT}` replays it", result.output)
    assert ET.fromstring(svg.read_text(encoding="utf-8")).tag.endswith("svg")


def test_a_seed_is_told_whole_or_shrunk():
    clean = simulate("--seed", "3")
    assert clean.exit_code == 0
    assert "seed 3:" in clean.output
    whole = simulate("--seed", "3", "--fault", FAULT, "--whole")
    shrunk = simulate("--seed", "3", "--fault", FAULT)
    assert whole.exit_code == shrunk.exit_code == 1
    assert len(shrunk.output) < len(whole.output)


def test_a_probe_that_never_fires_fails_where_that_is_asked():
    result = simulate("--seeds", "1", "--require-probes")
    assert result.exit_code == 1
    assert "never reached" in result.output


def test_layers_can_be_left_out():
    result = simulate("--seeds", "12", "--fault", "rejected-continues/split-state", "--without", "admission")
    assert result.exit_code == 1


def test_bad_usage_is_said():
    assert simulate("--seeds", "0").exit_code == 2
    assert simulate("--jobs", "0").exit_code == 2
    assert simulate("--fault", "no-such/fault", "--seeds", "1").exit_code == 2
    assert simulate("--without", "umbrella", "--seeds", "1").exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--seeds -3", "above zero"),
        ("--minutes nan", "above zero"),
        ("--minutes inf", "above zero"),
        ("--jobs 1000000", "from 1 to"),
        ("--first -1", "count from zero"),
        ("--seed -1", "count from zero"),
        ("--seed 1 --seeds 2", "runs that one seed"),
        ("--seed 1 --require-probes", "runs that one seed"),
        ("--seed 1 --svg no-such-directory/a.svg", "a directory that is there"),
        ("--seed 1 --svg .", "a directory that is there"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_runs(words, said):
    result = simulate(*words.split())
    assert result.exit_code == 2
    assert said in result.output


def test_a_diagram_that_cannot_be_written_is_the_operators_to_mend():
    result = simulate("--seed", "1", "--svg", "/dev/full")
    assert result.exit_code == 2
    assert "cannot be written to /dev/full" in result.output


def test_what_is_left_out_stands_in_the_diagrams_title(tmp_path):
    svg = tmp_path / "run.svg"
    simulate("--seed", "3", "--fault", FAULT, "--without", "seal", "--svg", str(svg))
    assert f"--fault {FAULT} --without seal" in svg.read_text(encoding="utf-8")
