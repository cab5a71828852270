"""The reviewed list of equivalent mutants, and what is wrong with it.

`equivalent.toml` beside this file holds it. It may only name mutants that exist, each once, with a reason,
and only those that nothing kills.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.mutants.mutations import Mutation
from tests.mutants.runner import Fate, Verdict

LIST = Path(__file__).with_name("equivalent.toml")


def read(path: Path = LIST) -> dict[str, str]:
    """Return the reason of each listed mutant; ValueError for an entry that is no entry."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    reasons: dict[str, str] = {}
    for entry in entries:
        if set(entry) != {"mutants", "reason"} or not entry["mutants"] or not entry["reason"].strip():
            raise ValueError(f"{path.name}: {entry} must have mutants and a reason, and nothing else")
        for name in entry["mutants"]:
            if name in reasons:
                raise ValueError(f"{path.name}: {name} is listed twice")
            reasons[name] = " ".join(entry["reason"].split())
    return reasons


def strangers(reasons: Mapping[str, str], mutations: Iterable[Mutation]) -> Iterator[str]:
    """Say which entries name no mutant."""
    names = {str(mutation) for mutation in mutations}
    for name in reasons:
        if name not in names:
            yield f"{LIST.name} lists {name}, which is no mutant: take it out, or write its name as it is now"


def faults(reasons: Mapping[str, str], verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Say which mutants survived without being listed, and which are listed and were killed."""
    for verdict in verdicts:
        name = str(verdict.mutation)
        if verdict.fate is Fate.SURVIVED and name not in reasons:
            tried = (
                f"{verdict.tests_run} tests take its row" if verdict.tests_run else "no test takes its row"
            )
            yield f"{name} survives ({tried}): write the test that is missing, or list it with the reason"
        if verdict.fate is not Fate.SURVIVED and name in reasons:
            yield f"{name} is listed as equivalent and was killed, by {verdict.killer}: take it out"
