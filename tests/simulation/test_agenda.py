"""Virtual time moves forward only; what is due at once comes in the order in which it was added."""

from kvfence.simulation.agenda import Agenda


def test_items_come_in_the_order_of_time_and_then_of_being_added():
    agenda: Agenda[str] = Agenda()
    for after, item in ((30, "c"), (10, "a"), (10, "b")):
        agenda.add(after, item)
    assert [agenda.pop()[1] for _ in range(3)] == ["a", "b", "c"]
    assert agenda.now_us == 30
    assert len(agenda) == 0


def test_what_is_overdue_is_due_now():
    agenda: Agenda[str] = Agenda()
    agenda.add(10, "first")
    agenda.pop()
    number = agenda.add(-5, "late")
    assert agenda.pop() == (number, "late")
    assert agenda.now_us == 10
