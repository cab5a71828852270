"""Events as lines: written at once and for their owner alone, read back whole, and errors that name the line."""

from datetime import datetime
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.protocol.errors import OperatorError
from kvfence.report import AnyEvent, Bound, Cost, Figure, Finding, Place, RunStarted
from kvfence.report.events import FORMAT
from kvfence.report.jsonl import KINDS, MIDDLE_OF_LINE, JsonLinesWriter, as_lines, parse_events, read_events
from tests.report.samples import LEAKING, QUIET, RUNS, started

WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
WHOLE = st.integers(-(2**53), 2**53)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
for _struct in (Bound, Cost, Place):
    st.register_type_strategy(
        _struct,
        st.builds(
            _struct,
            **{
                field.name: {int: WHOLE, float: NUMBERS, str: WORDS}[field.type]
                for field in msgspec.structs.fields(_struct)
            },
        ),
    )


def strategy_of(kind):
    """A strategy for the type of a field: simple ones by name, others as hypothesis resolves them."""
    simple = {int: WHOLE, float: NUMBERS, str: WORDS}
    if kind in simple:
        return simple[kind]
    arguments = get_args(kind)
    if Figure in arguments:
        values = st.one_of(st.booleans(), WHOLE, NUMBERS, WORDS)
        return st.dictionaries(WORDS, st.builds(Figure, value=values, read_from=WORDS), max_size=3)
    if getattr(kind, "__origin__", None) is dict:
        return st.dictionaries(WORDS, st.one_of(*map(strategy_of, get_args(arguments[1]))), max_size=3)
    if getattr(kind, "__origin__", None) is tuple:
        return st.lists(strategy_of(arguments[0]), max_size=3).map(tuple)
    if arguments:
        return st.one_of(*map(strategy_of, arguments))
    if kind is Finding:
        return struct_strategy(Finding)
    return st.from_type(kind)


def struct_strategy(kind):
    return st.builds(kind, **{field.name: strategy_of(field.type) for field in msgspec.structs.fields(kind)})


EVENTS = st.one_of(*(struct_strategy(kind) for kind in get_args(AnyEvent)))


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=4))
def test_events_come_back_as_they_were_written(events):
    run = (started(), *(event for event in events if not isinstance(event, RunStarted)))
    recorded = parse_events(as_lines(run).encode(), "run.jsonl")
    assert recorded.events == run
    assert recorded.cut is None


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_a_run_that_was_cut_anywhere_gives_what_is_before_it(where):
    data = as_lines(LEAKING).encode()
    first = data.index(b"\n") + 1
    where = first + where % (len(data) - first)
    recorded = parse_events(data[:where], "run.jsonl")
    assert recorded.events == LEAKING[: data[:where].count(b"\n")]
    assert (recorded.cut is None) == data[:where].endswith(b"\n")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_written_line_by_line_and_read_back(name, tmp_path):
    path = tmp_path / "run.jsonl"
    with JsonLinesWriter.to(path) as writer:
        for number, event in enumerate(RUNS[name], start=1):
            writer.write(event)
            assert len(path.read_bytes().splitlines()) == number, "it is out before the next thing happens"
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_events(path).events == RUNS[name]


def test_a_file_that_was_open_to_others_is_closed_to_them_and_emptied(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("old")
    path.chmod(0o644)
    JsonLinesWriter.to(path, replaces=True).close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b""


def test_an_earlier_run_is_not_lost(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(as_lines(QUIET))
    with pytest.raises(OperatorError, match="holds an earlier run, which may be evidence: name another"):
        JsonLinesWriter.to(path)
    assert read_events(path).events == QUIET


def test_a_run_goes_on_in_its_file_after_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(as_lines(QUIET[:2]).encode() + b'{"event":"ans')
    with JsonLinesWriter.to(path, goes_on=True) as writer:
        for event in QUIET[2:]:
            writer.write(event)
    assert read_events(path).events == QUIET


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_file_is_written_by_one_run_at_a_time(goes_on, tmp_path):
    path = tmp_path / "run.jsonl"
    with JsonLinesWriter.to(path) as writer:
        writer.write(QUIET[0])
        with pytest.raises(OperatorError, match="is being written by another run"):
            JsonLinesWriter.to(path, goes_on=goes_on)
    assert read_events(path).events == QUIET[:1], "it was not emptied"
    JsonLinesWriter.to(path, goes_on=goes_on, replaces=True).close()


def test_two_runs_in_one_file_are_refused(tmp_path):
    with pytest.raises(OperatorError, match="more than one run"):
        parse_events(as_lines((*QUIET, *QUIET)).encode(), "both.jsonl")


def test_a_place_that_cannot_be_written_or_read_is_an_operators_error(tmp_path):
    with pytest.raises(OperatorError, match="cannot write"):
        JsonLinesWriter.to(tmp_path / "nowhere" / "run.jsonl")
    with pytest.raises(OperatorError, match="cannot read"):
        read_events(tmp_path / "run.jsonl")


GOOD = as_lines(QUIET[:1]).encode()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"event":"weather_changed"}', r"run:2: the event 'weather_changed' is from a newer kvfence"),
        (b'{"event":"noted"}', r"run:2: the event 'noted' cannot be read \(.*text"),
        (b'{"event":"noted","text":3}', r"run:2: the event 'noted' cannot be read"),
        (b'{"findings":[]}', r"run:2: this JSON is no event of kvfence"),
        (b"[1]", r"run:2: this JSON is no event of kvfence"),
        (b'{"event"', r"run:2: this line is no JSON"),
        (b'{"event":"noted","text":"\xff"}', r"run:2: "),
        (
            as_lines([started()]).replace('"format":1', '"format":99').encode().strip(),
            r"run:2: format 99 is from a newer",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line, words):
    with pytest.raises(OperatorError, match=words):
        parse_events(GOOD + line + b"\n" + GOOD, "run")


def test_the_format_is_in_the_file_so_that_a_newer_one_is_told():
    event = RunStarted(tool="check", version="9.9", run="r", started="t", targets=(), format=FORMAT + 1)
    with pytest.raises(OperatorError, match=r"from a newer kvfence \(9.9\)"):
        parse_events(as_lines([event]).encode(), "run")


def test_a_last_line_that_was_cut_off_is_told_and_not_fatal():
    recorded = parse_events(GOOD + b'{"event":"no', "run")
    assert (recorded.events, recorded.cut) == (QUIET[:1], MIDDLE_OF_LINE)


def test_a_file_that_is_no_run_is_refused():
    with pytest.raises(OperatorError, match="holds no event"):
        parse_events(b"\n\n", "run")
    with pytest.raises(OperatorError, match="run:1: a run begins with run_started"):
        parse_events(as_lines(QUIET[1:]).encode(), "run")


def test_every_kind_of_event_is_known():
    assert len(KINDS) == len(get_args(AnyEvent))
    assert datetime.fromisoformat(QUIET[0].started)
