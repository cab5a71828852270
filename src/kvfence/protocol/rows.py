"""A row of a table: where a fact leads, and which action the core takes on the way."""

from typing import Generic, NamedTuple, TypeVar

State = TypeVar("State")


class Row(NamedTuple, Generic[State]):
    """Next state and the name of the action, a method `_do_<action>` of the core."""

    next_state: State
    action: str
