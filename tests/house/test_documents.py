"""The documents name what is there, every figure is explained, and each check can fail."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest
import typer
from tests.house.documents import (
    DOCUMENTS,
    MADE_LATER,
    dead_links,
    figures_of,
    missing_files,
    unknown_flags,
    unknown_metrics,
)
from tests.house.source import ROOT, modules, sample

from kvfence.check import pytest_plugin
from kvfence.check.watch_state import WatchState, exposition
from kvfence.cli.app import app
from kvfence.cli.serve import FLAGS
from kvfence.serving.config import KEY_OF_FIELD, ServeConfig
from kvfence.serving.metrics import HELP, ServingMetrics

SERVE_FLAGS = {f"--{KEY_OF_FIELD.get(name, name).replace('_', '-')}" for name in FLAGS}
# Settings that are on can be turned off.
OFF_FLAGS = {f"--no-{field.name.replace('_', '-')}" for field in fields(ServeConfig) if field.default is True}


def flags_of(command: click.Command) -> Iterator[str]:
    """Every flag of a command and of those below it."""
    for parameter in command.params:
        yield from (flag for flag in (*parameter.opts, *parameter.secondary_opts) if flag.startswith("--"))
    for below in getattr(command, "commands", {}).values():
        yield from flags_of(below)


COMMAND_FLAGS = set(flags_of(typer.main.get_command(app)))
PYTEST_FLAGS = set(re.findall(r'"(--kvfence-[a-z-]+)"', Path(pytest_plugin.__file__).read_text()))


def shown_metrics() -> set[str]:
    """Names of all metrics, with `_total` where they are counters."""
    shown = ServingMetrics(dict).render().decode() + exposition(WatchState(target="t"), scenarios=1)
    return {line.split()[2] for line in shown.splitlines() if line.startswith("# TYPE")} | {
        f"kvfence_{name}" for name in HELP
    }


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_name_what_is_there(name):
    text = (ROOT / name).read_text()
    faults = [
        *dead_links(name, text),
        *unknown_flags(name, text, COMMAND_FLAGS | PYTEST_FLAGS | SERVE_FLAGS | OFF_FLAGS),
        *unknown_metrics(name, text, shown_metrics()),
        *missing_files(name, text),
    ]
    assert faults == []


def test_every_figure_of_a_node_is_explained_and_every_explanation_has_its_figure():
    counted = set().union(*(figures_of(module) for module in modules() if module.package == "serving"))
    counted |= {"figures_dropped_total"}  # the table's own
    assert counted == set(HELP)


def test_every_flag_has_a_place_in_the_help_and_none_is_listed_twice():
    assert len(SERVE_FLAGS) == len(FLAGS)


def test_a_dead_link_is_found():
    text = "[here](README.md) [there](docs/nowhere.md#part) [out](https://a.example/x.md)"
    assert list(dead_links("x.md", text)) == ["x.md: the link to docs/nowhere.md leads nowhere"]
    assert list(dead_links("docs/x.md", "[up](../README.md)")) == []
    for made_later in MADE_LATER:
        assert list(dead_links("x.md", f"[figures]({made_later})")) == []


def test_an_unknown_flag_is_found():
    assert list(unknown_flags("x.md", "use --port 1, --prot 2, a--b and --help", {"--port"})) == [
        "x.md: there is no flag --prot"
    ]


def test_an_unknown_metric_is_found():
    assert list(unknown_metrics("x.md", "`kvfence_a{x}` and kvfence_b", {"kvfence_a"})) == [
        "x.md: there is no metric kvfence_b"
    ]


def test_a_missing_file_is_found():
    text = "`serving/banner.py`, `tests/house/rings.py`, `protocol/*_table.py`, `serving/nothing.py`, `a.py`"
    assert list(missing_files("x.md", text)) == ["x.md: there is no file serving/nothing.py"]


def test_figures_are_found_in_calls_about_stats_alone():
    text = (
        "self.stats.add('a_total', 1, reason='x')\nstats.set('b', 2)\nself.stats.begin('c_total', 'd_total')\n"
        "stat_key('e', {'f': 'g'})\nseen.add('h')\nself.stats.snapshot('i')\n"
    )
    assert figures_of(sample(text)) == {"a_total", "b", "c_total", "d_total", "e"}
