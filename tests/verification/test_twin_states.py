"""What TLC writes down is read strictly, and equal values are equal objects."""

import pytest

from kvfence.protocol.errors import InternalError
from kvfence.verification.twin_states import mapped, read_states, read_value, state


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17),
        ("TRUE", True),
        ("FALSE", False),
        ('"peer_lost"', "peer_lost"),
        ('""', ""),
        ("<<>>", ()),
        ("<< >>", ()),
        ('<<"Abort", 1, 2>>', ("Abort", 1, 2)),
        ("<<<<1, 0>>, <<>>>>", ((1, 0), ())),
        ("{}", frozenset()),
        ('{"p", "d"}', frozenset({"d", "p"})),
        ("{<<1, 1, 0>>}", frozenset({(1, 1, 0)})),
        ('[state |-> "new", number |-> 0]', mapped({"number": 0, "state": "new"})),
        ("(0 :> 2 @@ 1 :> 0)", mapped({1: 0, 0: 2})),
        (
            "( 0 :> [owner |-> 1] @@\n  1 :> [owner |-> 0] )",
            mapped({0: mapped({"owner": 1}), 1: mapped({"owner": 0})}),
        ),
    ],
)
def test_a_value_is_read(text, value):
    assert read_value(text) == value


def test_a_function_of_numbers_is_no_sequence():
    assert read_value("(0 :> 5)") != read_value("<<5>>")


def test_states_are_read_variable_by_variable_in_any_order():
    text = "State 1:\n/\\ next = 1\n/\\ queue = <<>>\n\nState 2:\n/\\ queue = <<1>>\n/\\ next = 2\n\n"
    assert list(read_states(text)) == [state({"queue": (), "next": 1}), state({"queue": (1,), "next": 2})]


def test_a_state_of_one_variable_has_no_conjunction():
    assert list(read_states("State 1:\nx = 3\n")) == [state({"x": 3})]


@pytest.mark.parametrize("text", ["<<1, 2", "[a -> 1]", "(0 :> 1", "$", "foo", "{1, 2>>"])
def test_what_is_no_value_is_an_error(text):
    with pytest.raises(InternalError, match="TLC wrote"):
        read_value(text)
