"""Each benchmark runs and yields its rows; the tables and the README are made from them as promised.

A tiny random model stands in for the real one: what is tested is the harness, never a speed.
"""

import json

import pytest
from benchmarks import __main__ as command
from benchmarks import figures, page
from benchmarks.catalogue import BENCHMARKS, BY_NAME
from benchmarks.timing import Spread, interleave
from tests.house.source import ROOT

from kvfence.protocol.errors import OperatorError

MACHINE = {
    name: name
    for name in ("date", "cpu", "cores", "memory", "load", "python", "torch", "transformers", "numpy")
} | {"xxhash": "1", "kvfence": "2"}
TINY = {
    "vocab_size": 101,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 2048,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    from transformers import AutoConfig, AutoModelForCausalLM, set_seed

    folder = tmp_path_factory.mktemp("model")
    set_seed(7)
    AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **TINY)).save_pretrained(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield str(folder)


def shown(name, result):
    """Sections and figures of a result, which must survive JSON."""
    result = json.loads(json.dumps(result))
    benchmark = BY_NAME[name]
    sections = benchmark.show(result)
    for section in sections:
        assert all(len(row) == len(section.columns) for row in section.rows)
        assert page.section_text(section)
    return sections, benchmark.figures(result)


def test_every_module_with_a_run_is_in_the_catalogue():
    modules = {file.stem for file in (ROOT / "benchmarks").glob("*.py") if "\ndef run(" in file.read_text()}
    assert modules == set(BY_NAME)


def test_the_simulator_yields_hours_and_rates():
    sections, lines = shown("simulator", BY_NAME["simulator"].run(quick=True))
    assert len(sections[0].rows) == 4
    assert lines[0].what == "simulated hours a real minute"


@pytest.mark.parametrize("name", ["fence_parts", "transfer", "explorer"])
def test_parts_without_a_model_yield_rows(name):
    sections, _ = shown(name, BY_NAME[name].run(quick=True))
    assert sections[0].rows


def test_the_fence_on_a_model_yields_shares_and_both_levels(tiny_model):
    result = BY_NAME["fence_end_to_end"].run(quick=True, model=tiny_model)
    assert [row["work"] for row in result["rows"]] == [
        "prefill 1 x 512",
        "prefill 16 x 128",
        "decode 1 x 512",
        "decode 16 x 512",
    ]
    for row in result["rows"]:
        assert row["share_over_off_percent"]["most"] > 0, "the fence is up at `sealed`"
        assert row["parts_us"]["verify"]["sealed"] > row["parts_us"]["verify"]["off"]
        assert set(row["end_to_end"]) == {"off", "sealed", "control"}
    sections, lines = shown("fence_end_to_end", result)
    assert len(sections) == 2
    assert len(lines) == 8


def test_plain_against_paged_yields_both_dtypes(tiny_model):
    sections, lines = shown("plain_vs_paged", BY_NAME["plain_vs_paged"].run(quick=True, model=tiny_model))
    assert {row[0] for row in sections[0].rows} == {"bfloat16", "float32"}
    assert len(lines) == len(sections[0].rows) == 8


def test_a_deployment_that_cannot_start_is_skipped_with_its_words():
    sections, lines = shown("serving", BY_NAME["serving"].run(quick=True, flags=["--no-such-flag"]))
    assert "no-such-flag" in sections[0].note
    assert not lines


@pytest.mark.slow
@pytest.mark.e2e
def test_a_deployment_yields_start_idle_and_loads():
    sections, lines = shown("serving", BY_NAME["serving"].run(quick=True))
    assert [row[0] for row in sections[0].rows] == ["1", "16"]
    assert len(lines) == 6


@pytest.mark.slow
def test_the_incident_s_size_yields_lease_guard_and_release():
    _, lines = shown("incident_size", BY_NAME["incident_size"].run(quick=True))
    assert len(lines) == 3


# ---------------------------------------------------------------- verdicts
def fence_result(median):
    share = {"least": 0.1, "median": median, "most": 2.0, "count": 3}
    over = {"cpu_least": 0.0, "cpu_rounds_median": 0.1, "wall_least": 0.0}
    row = {
        "work": "decode 1 x 512",
        "share_over_off_percent": share,
        "overhead_percent": {"sealed": over, "control": over},
    }
    return {"target_percent": 1.0, "rows": [row]}


@pytest.mark.parametrize(("median", "verdict"), [(1.0, "met"), (1.01, "**missed**")])
def test_a_target_is_met_or_missed(median, verdict):
    assert figures.fence_figures(fence_result(median))[0].cells[-1] == verdict


def test_a_figure_without_a_target_has_no_verdict():
    assert figures.fence_figures(fence_result(0.5))[1].cells[-2:] == ("", "")


# ---------------------------------------------------------------- files
def record(*, quick):
    return {
        "name": "fence_end_to_end",
        "quick": quick,
        "machine": MACHINE,
        "result": {"skipped": "no model"},
    }


def test_only_full_runs_are_shown(tmp_path):
    page.save(record(quick=True), tmp_path)
    assert page.load(tmp_path) == {}
    page.save(record(quick=False), tmp_path)
    assert set(page.load(tmp_path)) == {"fence_end_to_end"}


def test_the_readme_keeps_what_is_outside_the_markers(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    records = {"fence_end_to_end": record(quick=False)}
    assert page.write_readme(records, readme)
    text = readme.read_text()
    assert text.startswith(f"before\n{page.BEGIN}\n| figure |")
    assert text.endswith(f"\n{page.END}\nafter\n")
    assert "old" not in text
    assert page.write_readme(records, readme)
    assert readme.read_text() == text, "twice is once"


@pytest.mark.parametrize("text", ["no markers", f"{page.END} {page.BEGIN}"])
def test_a_readme_without_markers_is_left_alone(tmp_path, text):
    readme = tmp_path / "README.md"
    readme.write_text(text)
    assert not page.write_readme({}, readme)
    assert readme.read_text() == text


def test_the_page_names_the_machine_and_says_what_was_not_measured(tmp_path):
    page.write_page({"fence_end_to_end": record(quick=False)}, tmp_path / "figures.md")
    text = (tmp_path / "figures.md").read_text()
    assert "Not measured: no model" in text
    assert "cores of cpu" in text


def test_quick_figures_are_not_written_to_the_readme(capsys):
    assert command.main(["--quick", "--write-readme"]) == command.USAGE_ERROR
    assert "leave --quick away" in capsys.readouterr().err


# ---------------------------------------------------------------- timing
def test_variants_take_turns_in_alternating_order():
    order = []
    samples = interleave({name: lambda name=name: order.append(name) for name in "ab"}, 3)
    assert "".join(order) == "abbaab"
    assert {name: len(found) for name, found in samples.items()} == {"a": 3, "b": 3}


def test_a_spread_has_least_median_and_most():
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(1.0, 2.0, 3.0, 3)


def test_a_benchmark_does_not_hide_its_errors(tiny_model):
    with pytest.raises(OperatorError):
        BY_NAME["fence_end_to_end"].run(quick=True, model=tiny_model + "/nowhere")


def test_names_are_unique():
    assert len(BY_NAME) == len(BENCHMARKS)
