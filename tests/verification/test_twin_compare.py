"""Cores and twin come to the same states; a difference in either of them is seen."""

import pytest
from tests.verification.twin_tool import MODEL_FOLDER, needs_the_tool

from kvfence.protocol import Decisions
from kvfence.protocol.errors import InternalError, OperatorError
from kvfence.verification import twin_compare
from kvfence.verification.twin import find_tool
from kvfence.verification.twin_compare import (
    _BEGIN,
    _END,
    Comparison,
    compare,
    explore_cores,
    main,
    with_table,
)
from kvfence.verification.twin_scopes import TWIN_SCOPES

SCOPES = {scope.name: scope for scope in TWIN_SCOPES}
MODEL = (MODEL_FOLDER / "Transfer.tla").read_text()


@needs_the_tool
@pytest.mark.parametrize("name", ["straight", "abort"])
def test_the_cores_reach_the_states_of_the_twin_and_no_others(name):
    found = compare(SCOPES[name], MODEL_FOLDER, find_tool())
    assert found.is_equal
    assert found.twin_states == found.projected <= found.core_states


@needs_the_tool
@pytest.mark.slow
@pytest.mark.parametrize("name", ["deadline", "two-pages", "crash", "refusal", "retry"])
def test_the_same_in_scopes_that_take_longer(name):
    assert compare(SCOPES[name], MODEL_FOLDER, find_tool()).is_equal


@pytest.mark.parametrize("name", ["straight", "abort", "deadline", "two-pages", "crash"])
def test_the_explorers_keys_lose_no_state_where_nothing_can_be_renamed(name):
    """With one lease a state has one name. So the explorer, as it verifies, must reach every state too."""
    assert SCOPES[name].leases == 1
    assert explore_cores(SCOPES[name], by_key=True)[1] == explore_cores(SCOPES[name])[1]


def test_the_explorers_keys_take_states_together_that_differ_in_names():
    by_key = explore_cores(SCOPES["refusal"], by_key=True)[1]
    assert by_key < explore_cores(SCOPES["refusal"])[1]


@needs_the_tool
def test_a_twin_that_differs_is_seen(tmp_path):
    """It says that the abort goes to decode alone: no law is broken by that, and yet it is another protocol."""
    told_both = 'IF router[r].writes THEN On("rd", gone) @@ On("rp", gone) ELSE On("rd", gone)'
    assert told_both in MODEL
    (tmp_path / "Transfer.tla").write_text(MODEL.replace(told_both, 'On("rd", gone)'))
    found = compare(SCOPES["abort"], tmp_path, find_tool())
    assert not found.is_equal
    assert found.only_cores
    assert found.only_twin


@needs_the_tool
def test_a_twin_that_breaks_a_law_is_not_compared(tmp_path):
    free_at_once = MODEL.replace('Mutant = "free_on_abort"', "TRUE")
    assert free_at_once != MODEL
    (tmp_path / "Transfer.tla").write_text(free_at_once)
    with pytest.raises(InternalError, match="breaks QuietBeforeFree"):
        compare(SCOPES["abort"], tmp_path, find_tool())


def test_cores_that_differ_without_breaking_a_law_are_seen():
    """Cores that never free a page read nothing foreign; but the twin's pages come home."""

    class Stingy(Decisions):
        def may_free(self, steps: int, *, writer_is_quiet: bool) -> bool:
            return False

    _, right = explore_cores(SCOPES["straight"])
    _, other = explore_cores(SCOPES["straight"], Stingy())
    assert right - other
    assert other - right


def test_cores_that_break_a_law_are_not_compared():
    class Hasty(Decisions):
        def abort_is_quiet(self) -> bool:
            return True

    with pytest.raises(InternalError, match=r"abort: .*kvfence verify"):
        explore_cores(SCOPES["abort"], Hasty())


def test_a_scope_that_does_not_close_is_an_error(monkeypatch):
    monkeypatch.setattr(twin_compare, "STATES_MAX", 5)
    with pytest.raises(InternalError, match="meant to close"):
        explore_cores(SCOPES["straight"])


@pytest.mark.parametrize(
    ("alone", "ending", "word"), [(frozenset(), 0, "yes"), (frozenset({()}), 1, "no: 0")]
)
def test_the_table_and_the_ending_say_whether_they_are_equal(monkeypatch, capsys, alone, ending, word):
    def found(scope, _folder, _tool):
        return Comparison(scope, 359, 265, 265, alone, frozenset())

    monkeypatch.setattr(twin_compare, "find_tool", lambda: None)
    monkeypatch.setattr(twin_compare, "compare", found)
    assert main([str(MODEL_FOLDER), "--scope", "abort"]) == ending
    said = capsys.readouterr().out
    assert word in said
    assert "359" in said


def test_the_table_is_put_between_its_marks():
    found = Comparison(SCOPES["abort"], 359, 1265, 1265, frozenset(), frozenset())
    document = f"before\n{_BEGIN}\nold\n{_END}\nafter\n"
    once = with_table(document, [found])
    assert "old" not in once
    assert "| 1,265 | 1,265 | yes |" in once
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert with_table(once, [found]) == once
    with pytest.raises(OperatorError, match="no place for the table"):
        with_table("nothing", [found])


def test_a_missing_tool_ends_with_2(monkeypatch, capsys):
    monkeypatch.setattr("kvfence.verification.twin.shutil.which", lambda _name: None)
    assert main([str(MODEL_FOLDER)]) == 2
    assert "install a Java runtime" in capsys.readouterr().out
