"""Try some mutants with the killers of a folder, in a process of its own, and print the verdicts as JSON.

For the runner's tests: a runner forks and takes over a whole pytest run, which one inside another cannot.
`python -m tests.mutants.drive FOLDER NAME…`; the kind `same` is the row itself, no mutant at all. The
second killer kills what leads to RUNNING, cannot tell of what leads to WAITING, and spares the rest.
"""

import json
import sys

from tests.mutants.mutations import TABLES, Mutation, all_mutations, chosen
from tests.mutants.runner import RigError, Verdict, try_mutations

CPU_S_MAX = 2


def same(name: str) -> Mutation:
    """Return the mutation that changes nothing."""
    role, _, place = name.removesuffix(" same").partition(":")
    state, _, fact = place.partition("/")
    table = TABLES[role]
    row = table.rows[table.states[state], table.facts[fact]]
    return Mutation(role, state, fact, "same", row)


def second(mutation: Mutation) -> bool | None:
    """Kill, spare or be silent, by the mutation's kind."""
    return {"to RUNNING": True, "to WAITING": None}.get(mutation.kind, False)


def main(folder: str, names: list[str]) -> int:
    """Try them."""

    def report(_verdict: Verdict) -> None:
        """Nobody watches."""

    mutations = [same(n) if n.endswith(" same") else chosen(all_mutations(), [n])[0] for n in names]
    try:
        verdicts = try_mutations(mutations, report, jobs=2, where=folder, cpu_s_max=CPU_S_MAX, second=second)
    except RigError as error:
        print(json.dumps({"error": str(error)}))
        return 1
    print(json.dumps({str(v.mutation): [v.fate.value, v.killer, v.tests_run] for v in verdicts}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
