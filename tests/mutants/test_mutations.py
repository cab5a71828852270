"""The list of mutations is whole, each has a name, and one is applied to exactly one row."""

import pytest

from kvfence.protocol import DECODE, DecodeFact, DecodeState
from kvfence.protocol.rows import Row
from kvfence.protocol.tables import FAIL_CLOSED
from tests.mutants.mutations import NOTHING, SILENT, TABLES, all_mutations, applied, chosen, sampled

KEY = (DecodeState.RESERVED, DecodeFact.ABORT)


def test_every_row_is_dropped_led_elsewhere_silenced_and_given_another_action():
    by_row = {}
    for mutation in all_mutations():
        by_row.setdefault((mutation.role, *mutation.key), []).append(mutation.group)
    rows = {(role, *key): row for role, table in TABLES.items() for key, row in table.rows.items()}
    assert by_row.keys() == rows.keys()
    for place, groups in by_row.items():
        elsewhere = len(TABLES[place[0]].states) - 1
        silent = 0 if rows[place].action == NOTHING else 1
        assert (groups.count("drop"), groups.count("to"), groups.count("silent")) == (1, elsewhere, silent)
        table = TABLES[place[0]]
        is_absent = place[1] is table.absent
        alike = {row.action for (state, _), row in table.rows.items() if (state is table.absent) is is_absent}
        assert groups.count("as") == len(alike - {rows[place].action, NOTHING})


def test_no_mutant_is_the_shipped_row_and_no_two_have_one_name():
    mutations = all_mutations()
    assert all(TABLES[m.role].rows[m.key] != m.row for m in mutations)
    assert len({str(m) for m in mutations}) == len(mutations)


def test_a_role_a_row_and_one_mutant_can_be_chosen():
    mutations = all_mutations()
    assert {m.role for m in chosen(mutations, ["decode"])} == {"decode"}
    row = chosen(mutations, ["decode:RESERVED/ABORT"])
    assert {m.key for m in row} == {KEY}
    one = "decode:RESERVED/ABORT to VERIFYING"
    assert [str(m) for m in chosen(mutations, [one, "decode:RESERVED/ABORT"])] == list(
        dict.fromkeys([one, *map(str, row)])
    )
    with pytest.raises(ValueError, match="there is no mutation 'decode:RESERVED'"):
        chosen(mutations, ["decode:RESERVED"])


def test_a_sample_has_some_of_each_kind_and_table():
    mutations = all_mutations()
    sample = sampled(mutations)
    assert sample == sampled(mutations)
    assert {m.group for m in sample} == {m.group for m in mutations}
    assert {(m.role, m.group == "as") for m in sample} == {(r, x) for r in TABLES for x in (True, False)}
    assert 20 <= len(sample) <= 32


def test_a_mutation_is_one_wrong_row_and_can_be_undone():
    before = dict(DECODE.rows)
    assert before[KEY] == Row(DecodeState.CLOSING, "abort")
    expected = {
        "drop": Row(DecodeState.CLOSING, FAIL_CLOSED),
        "to VERIFYING": Row(DecodeState.VERIFYING, "abort"),
        "silent": Row(DecodeState.CLOSING, SILENT),
    }
    for kind, row in expected.items():
        with applied(chosen(all_mutations(), [f"decode:RESERVED/ABORT {kind}"])[0]):
            assert DECODE.find(*KEY) == row
            assert {key: r for key, r in DECODE.rows.items() if key != KEY} == {
                key: r for key, r in before.items() if key != KEY
            }
        assert list(DECODE.rows.items()) == list(before.items()), "in the same order, too"
