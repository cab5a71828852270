"""Which tests may kill a mutant.

Only tests of behaviour count: events in; commands, answers, pages and counts out. A test that compares the
tables with a written copy, a document or a list of rows would fail for every mutant, and the score would
say nothing. Those are named here, each with its reason, and never run; the rest of `tests/protocol` is asked.

A test that says `took(rig, STATE, FACT)` names the row that an event met, not where that row leads or what
it does: such a line cannot kill a mutant of that row.

The explorer is the second killer: it is asked about what the tests let live, and only then.
"""

import importlib.util

from tests.mutants.mutations import Mutation

FOLDER = "tests/protocol"
EXPLORER_SCOPE = "smoke"
EXPLORER_STATES_MAX = 300_000
NO_KILLERS = {
    "test_docs.py": "compares docs/protocol.md with the tables",
    "test_rows.py": "reads the tables: row coverage, and what follows where a row is missing",
    "test_words.py::test_a_missing_row_fails_closed_but_in_closing": "looks rows up in a table",
    "test_wrong_decisions.py": "expects failures, of wrong decisions: another one says nothing of a row",
    "test_schedules.py": "random: a mutant must have a killer that can be read, and whose reason is known",
}


def may_kill(node_id: str) -> bool:
    """Tell whether a failure of this test (or of any in this file) is the death of a mutant."""
    name = node_id.partition(f"{FOLDER}/")[2]
    return not any(name == other or name.startswith((f"{other}::", f"{other}[")) for other in NO_KILLERS)


def explorer_kills(_mutation: Mutation) -> bool | None:
    """Tell whether the explorer finds a broken law in this process, where the row is wrong.

    None where there is no explorer. It is loaded here, and not above, because hardly any run needs it.
    """
    if importlib.util.find_spec("kvfence.verification") is None:
        return None
    from kvfence.protocol import Decisions
    from kvfence.verification import SCOPES, explorer_finds

    found = explorer_finds(Decisions(), SCOPES[EXPLORER_SCOPE], states_max=EXPLORER_STATES_MAX)
    return found is not None
