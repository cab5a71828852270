"""Rows against the tables, passes against their launches: each fires on the fault and is silent else."""

from tests.verification.steps import lease, refs, row, step, take

from kvfence.protocol import commands, events
from kvfence.protocol.words import AttemptId, Role
from kvfence.verification.conformance_flight import Flight
from kvfence.verification.conformance_rows import RowCheck, name_key

ATTEMPT = AttemptId(1, 7, 1)
ANY = events.DrainRequested()


def rows(*taken, said=()):
    return step(ANY, *said, rows=[row(*one) for one in taken])


def granted(sequence=1):
    stamp = commands.StampPages(lease(sequence), refs(1))
    return rows((ATTEMPT, "ABSENT", "RESERVE_FITS", "RESERVED", "lease"), said=[stamp])


def test_a_path_of_the_table_is_taken_in_silence():
    check = RowCheck(Role.DECODE)
    found = take(
        check,
        granted(),
        rows((lease(), "RESERVED", "CLOSED_GOOD", "VERIFYING", "verify")),
        rows((lease(), "VERIFYING", "SEALS_GOOD", "RUNNING", "start")),
        rows(
            (lease(), "RUNNING", "FINISHED", "CLOSING", "finish"),
            (lease(), "CLOSING", "QUIET", "ABSENT", "free"),
        ),
        granted(2),
    )
    assert found == []
    assert (check.stand_ins, check.left_open) == (0, 1)


def test_a_row_that_leads_elsewhere_is_found():
    taken = rows((lease(), "RESERVED", "CLOSED_GOOD", "RUNNING", "start"))
    words = "CLOSED_GOOD in RESERVED leads to VERIFYING by verify, not to RUNNING by start"
    assert take(RowCheck(Role.DECODE), granted(), taken) == [("row", words)]


def test_a_fact_or_state_of_another_table_is_found():
    taken = rows((7, "ABSENT", "RESERVE_FITS", "ABSENT", "ignore"))
    assert take(RowCheck(Role.ROUTER), taken) == [("row", "a router node knows no RESERVE_FITS in ABSENT")]


def test_a_row_in_a_state_in_which_the_record_does_not_stand_is_found():
    taken = rows((lease(), "RUNNING", "FINISHED", "CLOSING", "finish"))
    words = "lease 3.1 stood in RESERVED, the row was taken in RUNNING"
    assert take(RowCheck(Role.DECODE), granted(), taken) == [("state", words)]
    assert take(RowCheck(Role.DECODE), taken) == [
        ("state", "lease 3.1 stood in ABSENT, the row was taken in RUNNING")
    ]


def test_a_reservation_without_a_lease_is_found():
    taken = rows((ATTEMPT, "ABSENT", "RESERVE_FITS", "RESERVED", "lease"))
    words = "attempt 1.7.1 is reserved, and 0 new leases are stamped"
    assert take(RowCheck(Role.DECODE), taken) == [("state", words)]


def test_what_stands_for_a_missing_row_is_legal_and_counted():
    check = RowCheck(Role.DECODE)
    closing = rows((lease(), "RESERVED", "FINISHED", "CLOSING", "fail_closed"))
    ignored = rows((lease(), "CLOSING", "FINISHED", "CLOSING", "ignore"))
    assert take(check, granted(), closing, ignored) == []
    assert check.stand_ins == 2
    quiet = rows((lease(), "RESERVED", "FINISHED", "CLOSING", "finish"))
    assert [kind for kind, _ in take(RowCheck(Role.DECODE), granted(), quiet)] == ["row"]


def test_a_missing_row_of_absent_passes_through_closing_with_nothing_to_close():
    check = RowCheck(Role.DECODE)
    way = (lease(), "ABSENT", "SEALS_GOOD", "CLOSING", "fail_closed")
    assert take(check, rows(way, (lease(), "CLOSING", "QUIET", "ABSENT", "nothing"))) == []
    assert (check.stand_ins, check.left_open) == (1, 0)
    found = take(check, rows(way, (lease(), "CLOSING", "QUIET", "ABSENT", "free")))
    assert found == [("row", "QUIET in CLOSING leads to ABSENT where nothing was there to close")]
    # With something to close, the way home does something.
    found = take(
        check,
        granted(),
        rows((lease(), "RESERVED", "ABORT", "CLOSING", "abort")),
        rows((lease(), "CLOSING", "QUIET", "ABSENT", "nothing")),
    )
    assert [kind for kind, _ in found] == ["row"]


def test_keys_have_names_for_people():
    assert [name_key(7), name_key(lease()), name_key(ATTEMPT)] == ["request 7", "lease 3.1", "attempt 1.7.1"]


# ------------------------------------------------------------ passes in flight
def heard(flight, *told):
    return [(kind.value, why) for event in told for kind, why in flight.take(event)]


def test_passes_are_known_from_launch_to_retirement():
    flight = Flight()
    assert (
        heard(flight, events.StepLaunched(1, (lease(), lease(2))), events.StepLaunched(2, (lease(),))) == []
    )
    assert (flight.of(lease()), flight.of(lease(2)), flight.among({2, 9})) == ({1, 2}, {1}, {2})
    assert heard(flight, events.StepRetired(1), ANY) == []
    assert flight.of(lease()) == {2}


def test_a_pass_that_is_launched_twice_or_retired_unlaunched_is_found():
    launch = events.StepLaunched(1, (lease(),))
    assert heard(Flight(), launch, launch) == [("step", "pass 1 is launched twice")]
    assert heard(Flight(), events.StepRetired(1)) == [("step", "pass 1 is retired and was not launched")]
