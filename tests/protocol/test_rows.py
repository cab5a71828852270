"""Row coverage: every row of every table is driven by an event, every missing row fails closed.

The scenarios of the three role files are run again here with a recorder, so that the report does not
depend on which tests ran before. `python -m tests.protocol.test_rows` prints it.
"""

import copy
import inspect
from collections import Counter

import pytest
from tests.protocol import test_decode, test_prefill, test_router
from tests.protocol.rig import Joined
from tests.protocol.stages import DECODE_STAGES, PREFILL_STAGES, ROUTER_STAGES

from kvfence.protocol import DECODE, PREFILL, ROUTER
from kvfence.protocol.laws import check_laws
from kvfence.protocol.rows import Row
from kvfence.protocol.tables import FAIL_CLOSED, IGNORE
from kvfence.protocol.words import AttemptId, LeaseId

TABLES = (DECODE, PREFILL, ROUTER)
STAGES = {"decode": DECODE_STAGES, "prefill": PREFILL_STAGES, "router": ROUTER_STAGES}
NAMES = {"decode": "d0", "prefill": "p0", "router": "r"}
SCENARIOS = [
    function
    for module in (test_decode, test_prefill, test_router)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("test_") and not inspect.signature(function).parameters
]


def driven_rows():
    """How often each (role, state, fact) was taken by an event, over all scenarios."""
    counts = Counter()
    before, Joined.recorder = Joined.recorder, []
    try:
        for scenario in SCENARIOS:
            scenario()
        for name, t in Joined.recorder:
            role = next(role for role, node in NAMES.items() if name[0] == node[0])
            counts[role, t.state, t.fact] += 1
    finally:
        Joined.recorder = before
    return counts


@pytest.fixture(scope="module")
def driven():
    return driven_rows()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.role)
def test_every_row_is_driven(table, driven):
    undriven = [f"{s.name} {f.name}" for s, f in table.rows if not driven[table.role, s, f]]
    assert not undriven, f"{table.role} has rows that no test drives: {undriven}"


def test_the_recorder_would_notice():
    """The detector's other half: a row that nothing drives is reported."""
    assert not driven_rows()["decode", "no such state", "no such fact"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.role)
def test_every_fact_and_state_is_used(table):
    facts = {fact for _, fact in table.rows}
    states = {state for state, _ in table.rows} | {row.next_state for row in table.rows.values()}
    assert states == set(table.states)
    never_legal = {fact.name for fact in set(table.facts) - facts}
    # These exist to be illegal: what an executor, a peer or we ourselves must never say.
    allowed = {"TAIL_STRAY", "PAGE_STRAY", "PREFILL_OTHER", "CHUNK_WRONG", "SUBMIT_AGAIN"}
    assert never_legal <= allowed, never_legal - allowed


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.role)
def test_every_action_is_a_method(table):
    core = type(Joined().core(NAMES[table.role]))
    for (state, fact), row in table.rows.items():
        prefix = "_absent_" if state is table.absent else "_do_"
        assert hasattr(core, prefix + row.action), f"{state.name} {fact.name} has no action"


def _record_in(rig, table, state):
    core = rig.core(NAMES[table.role])
    records = core.requests if table is ROUTER else core.leases
    return next(record for record in records.values() if record.state is state)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.role)
def test_every_missing_row_of_a_live_record_fails_closed(table):
    tried = 0
    for state, stage in STAGES[table.role].items():
        ready = stage()
        for fact in table.facts:
            if (state, fact) in table.rows:
                continue
            rig = copy.deepcopy(ready)
            core = rig.core(NAMES[table.role])
            record = _record_in(rig, table, state)
            core.trail, core._out = [], []
            core._fire(record, fact, None)
            core._settle()
            first = core.trail[0]
            assert first.next_state is table.closing
            assert first.action == (IGNORE if state is table.closing else FAIL_CLOSED)
            check_laws(core)
            tried += 1
    assert tried == len(table.states) * len(table.facts) - len(table.rows) - _missing_absent(table)


def _missing_absent(table):
    return sum((table.absent, fact) not in table.rows for fact in table.facts)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.role)
def test_every_missing_row_of_an_unknown_record_passes_through_closing(table):
    for fact in table.facts:
        if (table.absent, fact) in table.rows:
            continue
        for key in (LeaseId(3, 99), AttemptId(1, 99, 1)):
            rig = Joined()
            core = rig.core(NAMES[table.role])
            core._fire_absent(99 if table is ROUTER else key, fact, None)
            assert [t.next_state for t in core.trail] == [table.closing, table.absent]
            assert core.counts["illegal"] == 1
            check_laws(core)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.role)
def test_a_failed_record_comes_home(table):
    """Failing closed is not failing stuck: after each illegal event the deployment still empties."""
    for state, stage in STAGES[table.role].items():
        for fact in table.facts:
            if (state, fact) in table.rows or state is table.closing:
                continue
            rig = stage()
            core = rig.core(NAMES[table.role])
            core._out, core.trail = [], []
            record = _record_in(rig, table, state)
            core._fire(record, fact, None)
            core._settle()
            out, core._out = core._out, []
            rig.carry_out(NAMES[table.role], out)
            rig.held.clear()
            for _ in range(3):
                rig.retire_all()
                rig.run()
                rig.greet_all()
            rig.assert_home()


def test_only_closing_has_no_missing_rows():
    for table in TABLES:
        for state in table.states:
            for fact in table.facts:
                row = table.find(state, fact)
                assert isinstance(row, Row)
                if (state, fact) not in table.rows:
                    assert row.next_state is table.closing


def report():
    """Return the row-coverage report as text."""
    counts = driven_rows()
    lines = []
    for table in TABLES:
        hit = sum(bool(counts[table.role, s, f]) for s, f in table.rows)
        lines.append(f"{table.role}: {hit} of {len(table.rows)} rows driven")
        lines += [f"  {counts[table.role, s, f]:5d}  {s.name} + {f.name}" for s, f in table.rows]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
