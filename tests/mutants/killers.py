"""Which tests may kill a mutant.

Only tests of behaviour count: events in, commands, answers, pages and counts out. A test that compares the
tables with a written copy, a document or a list of rows would fail for every mutant, and the score would
say nothing; those are named here, with the reason, and never run. The rest of `tests/protocol` is asked.

What asserts `took(rig, STATE, FACT)` names the row that an event met, not where it leads or what it does:
such a line cannot kill a mutant of that row by itself.

A second killer, the explorer, is asked about survivors only.
"""

import importlib.util

from tests.mutants.mutations import Mutation

FOLDER = "tests/protocol"
NO_KILLERS = {
    "test_docs.py": "compares docs/protocol.md with the tables",
    "test_rows.py": "reads the tables: row coverage, and what follows where a row is missing",
    "test_wrong_decisions.py": "expects failures, of wrong decisions; a failure there says nothing of a row",
    "test_schedules.py::test_the_rig_is_alive": "expects a failure, of a wrong decision",
    "test_words.py::test_a_missing_row_fails_closed_but_in_closing": "looks rows up in a table",
}


def may_kill(node_id: str) -> bool:
    """Tell whether a failure of this test is the death of a mutant."""
    name = node_id.partition(f"{FOLDER}/")[2]
    return not any(name == other or name.startswith((f"{other}::", f"{other}[")) for other in NO_KILLERS)


def explorer_kills(mutation: Mutation) -> bool | None:
    """Ask the explorer whether it finds a broken law under this mutation; None where there is no explorer."""
    if importlib.util.find_spec("kvfence.verification") is None:
        return None
    return None
