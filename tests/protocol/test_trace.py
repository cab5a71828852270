"""What a trace shows of a step, what it never shows, and that a step can be read back."""

import dataclasses
import itertools
import types
import typing
from enum import Enum

import pytest
from tests.protocol.rig import Joined

from kvfence.protocol import Transition, commands, events
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.trace import HIDDEN, show, show_fields, show_row, show_step
from kvfence.protocol.trace_read import COMMANDS, EVENTS, read_command, read_event, read_key, read_name
from kvfence.protocol.words import (
    AttemptId,
    Done,
    End,
    EndReason,
    LeaseId,
    Manifest,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Timer,
    TimerKind,
)

PEER, LEASE, ATTEMPT = Peer("decode-0", 1 << 60), LeaseId(1 << 60, 4), AttemptId(12, 7, 1)
SECRET_TOKEN, SECRET_TEXT, SECRET_HASH = 987_654, "what tenant A wrote", b"of what tenant A wrote"
# Every value of a type that a step may have; text, bytes and token ids are marked.
VALUES = {
    int: [5],
    bool: [True, False],
    str: [SECRET_TEXT],
    bytes: [SECRET_HASH],
    Peer: [PEER],
    LeaseId: [LEASE],
    AttemptId: [ATTEMPT],
    PageRef: [PageRef(5, 3)],
    type(None): [None],
}
TOKEN_FIELDS = {"first_token"}


def values(hint, name=""):
    """One value for each shape that the type allows."""
    if name in TOKEN_FIELDS:
        return [SECRET_TOKEN, None] if hint is not int else [SECRET_TOKEN]
    if hint in VALUES:
        return VALUES[hint]
    if isinstance(hint, types.UnionType):
        return [value for arm in typing.get_args(hint) for value in values(arm)]
    if typing.get_origin(hint) is tuple:
        arms = typing.get_args(hint)
        if arms[-1] is Ellipsis:
            token = name == "tokens"
            return [(), (SECRET_TOKEN,) * 3 if token else tuple(values(arms[0]))]
        return list(itertools.product(*map(values, arms)))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)
    return things(hint)


def things(kind):
    """Every shape of a dataclass: all of its fields vary, one at a time."""
    shapes = {field.name: values(field.type, field.name) for field in dataclasses.fields(kind)}
    first = {name: shape[0] for name, shape in shapes.items()}
    return [kind(**first)] + [
        kind(**{**first, name: value}) for name, shape in shapes.items() for value in shape[1:]
    ]


def leaves(shown):
    if isinstance(shown, dict):
        return [leaf for value in shown.values() for leaf in leaves(value)]
    return [leaf for value in shown for leaf in leaves(value)] if isinstance(shown, list) else [shown]


@pytest.mark.parametrize("kind", [*EVENTS.values(), *COMMANDS.values()], ids=lambda kind: kind.__name__)
def test_nothing_that_a_prompt_could_be_learnt_from_is_shown(kind):
    for thing in things(kind):
        shown = leaves(show_fields(thing))
        assert SECRET_TOKEN not in shown
        assert not [leaf for leaf in shown if isinstance(leaf, str) and "tenant" in leaf]
        assert not [leaf for leaf in shown if isinstance(leaf, bytes)]


@pytest.mark.parametrize("kind", [*EVENTS.values(), *COMMANDS.values()], ids=lambda kind: kind.__name__)
def test_what_is_shown_can_be_read_back_and_is_shown_alike(kind):
    read = read_event if kind in EVENTS.values() else read_command
    for thing in things(kind):
        shown = show_fields(thing)
        again = read(kind.__name__, shown)
        assert type(again) is kind
        assert show_fields(again) == shown


def test_a_placeholder_stands_for_what_was_hidden():
    event = events.Reserve(PEER, ATTEMPT, PEER, 9, 4, SECRET_HASH)
    assert "token_hash" in HIDDEN
    assert read_event("Reserve", show_fields(event)) == dataclasses.replace(event, token_hash=b"")
    prefill = events.Prefill(PEER, ATTEMPT, PEER, LEASE, (PageRef(1, 1),), (SECRET_TOKEN,) * 3, SECRET_TEXT)
    assert show_fields(prefill)["tokens"] == 3
    assert read_event("Prefill", show_fields(prefill)).tokens == (0, 0, 0)


def test_names_say_what_they_are():
    shown = [show(PEER), show(LEASE), show(ATTEMPT), show(PageRef(5, 3))]
    assert shown == [f"decode-0/{1 << 60}", f"{1 << 60}.4", "12.7.1", "5@3"]
    assert read_name(Peer, shown[0]) == PEER
    assert [read_key(shown[1]), read_key(shown[2]), read_key(7)] == [LEASE, ATTEMPT, 7]


def test_text_has_no_place_in_a_trace():
    with pytest.raises(InvariantError, match="a str has no place"):
        show(SECRET_TEXT)


def test_a_step_is_shown_with_its_rows_and_commands():
    rig = Joined()
    rig.submit(prompt=8, max_tokens=4)
    kind, of, rows, said = show_step(events.ClientGone(1), rig.router.trail, [commands.DeliverToken(1, 8)])
    assert (kind, of) == ("ClientGone", {"request": 1})
    assert rows == [
        [1, "ABSENT", "SUBMIT_FITS", "QUEUED", "enqueue"],
        [1, "QUEUED", "ROOM", "RESERVING", "open_attempt"],
    ]
    assert rows == [show_row(row) for row in rig.router.trail]
    assert isinstance(rig.router.trail[0], Transition)
    assert said == [["DeliverToken", {"request": 1, "position": 8}]]


def test_nested_words_are_shown_by_their_fields():
    manifest = Manifest(LEASE, PEER, 9, 3, SECRET_HASH, SECRET_TOKEN, 9)
    shown = show(Done(manifest))
    assert shown == {
        "manifest": {
            "lease": show(LEASE),
            "writer": show(PEER),
            "tokens": 9,
            "pages": 3,
            "first_token": True,
            "first_position": 9,
        }
    }
    end = End(EndReason.REFUSED, refusal=Refusal(RefusalCode.BUSY), detail=SECRET_TEXT)
    assert show(end)["refusal"] == {"code": "busy", "needed_tokens": None, "limit_tokens": None}
    assert show(Timer(TimerKind.BATCH, (LEASE, 2))) == {"kind": "batch", "key": [show(LEASE), 2]}


@pytest.mark.parametrize(
    ("kind", "shown", "said"),
    [
        ("Nonsense", {}, "there is no event 'Nonsense'"),
        ("StepRetired", [], "shown by its fields"),
        ("StepRetired", {}, "not the fields that are shown: step"),
        ("StepRetired", {"step": 1, "more": 2}, "not the fields that are shown: more"),
        ("StepRetired", {"step": True}, "StepRetired.step: True is no count"),
        ("StepRetired", {"step": -1}, "-1 is no count"),
        ("PageWanted", {"lease": "5@3"}, "'5@3' names no LeaseId"),
        ("StepLaunched", {"step": 1, "leases": "1.2"}, "is no list"),
        ("Hello", {"sender": "a/1", "role": "x", "pool_tokens": 1, "free_pages": 1, "draining": False}, "x"),
        ("Closed", {"sender": "a/1", "lease": "1.1", "outcome": {}}, "none of what may stand there"),
        ("Expired", {"timer": {"kind": "batch", "key": ["1.2"]}, "generation": 1}, "has not 2 entries"),
        ("WriteFailed", {"lease": "1.1", "batch": 1, "quiet": 1}, "is not what stands there"),
    ],
)
def test_what_no_step_can_have_shown_is_refused(kind, shown, said):
    with pytest.raises(ValueError, match=said):
        read_event(kind, shown)


def test_an_unknown_command_and_a_key_of_nothing_are_refused():
    with pytest.raises(ValueError, match="there is no command"):
        read_command("Nonsense", {})
    for key in (True, None, "5@3", "x"):
        with pytest.raises(ValueError, match="names no request, lease or attempt"):
            read_key(key)
