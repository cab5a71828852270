"""A trace that was changed is rejected: every kind of change of meaning, at every place of good traces.

The unchanged traces conform, so that what is rejected is rejected for the change. Steps are numbered anew
after lines were dropped, doubled or moved: the numbers alone do not give the change away.

What cannot be seen, because the changed trace is the trace of another good run:
- lines at the end of a node that is not whole: a node that was killed a little sooner leaves just that;
- the loss of a message on its way: nobody heard it, and what it would have ended is reported as not home;
- a step that moved nothing and on which nothing depends (a hello of a known peer, an abort of what is over);
- two neighbouring steps of one node of which neither depends on the other: the nodes wrote them in an
  order that no law asks for. The order in which messages came is not among them;
- where in a page a chunk ended, as long as the same pages are full; how many pages a hello says are free;
- what a trace does not show: token ids, hashes, domains, texts, times.
"""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.protocol.test_prefill import Shelf
from tests.verification.recorded import Recorded, check, kinds

from kvfence.verification import ViolationKind, render_trace

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
# Steps of which a good run could have had one less, or one more.
HARMLESS_EVENTS = {"Hello", "LowestLive", "Close", "Abort", "Expired", "Reconnected", "DrainRequested"}

RECEIVED = {"Reserve", "Prefill", "Reserved", "AttemptEnded", "Closed", "Abort", "Close", "LowestLive"}


def _plain():
    """Requests that are served, one whose client leaves, pages that grow."""
    rig = Recorded(decode_pages=12, prefill_pages=12)
    rig.submit(10, 9)
    rig.submit(3, 3)
    rig.run()
    rig.hold("write")
    rig.submit(14, 4)
    rig.run()
    rig.leave(3)
    rig.run()
    rig.release("write")
    rig.run()
    rig.assert_home()
    return rig.stop()


def _shared():
    """A prefix cache, two nodes of each role, a preemption."""
    rig = Recorded(prefills=2, decodes=2, decode_pages=7, spare=1, prefix=Shelf, same_prompts=True)
    for prompt, most in ((9, 6), (9, 12), (8, 9), (13, 2)):
        rig.submit(prompt, most)
    rig.run()
    rig.assert_home()
    return rig.stop()


def _crashed():
    """A writer dies with a write in flight; another incarnation goes on."""
    rig = Recorded()
    rig.hold("write")
    rig.submit(10, 4)
    rig.run()
    old = rig.crash("p0")
    rig.release("write")
    rig.run()
    rig.cut("d0", old) if old in rig.decode.writers else None
    rig.run()
    rig.assert_home()
    return rig.stop()


GOOD = {"plain": _plain(), "shared": _shared(), "crashed": _crashed()}
TRACES = st.sampled_from(sorted(GOOD))


def name_of(line):
    return line["node"], line["incarnation"]


def renumbered(lines):
    """Steps of each node counted anew, in the order in which they stand."""
    counts, out = {}, []
    for line in lines:
        number = counts[name_of(line)] = counts.get(name_of(line), -1) + 1
        out.append({**line, "step": number})
    return out


def step_lines(lines, accept=lambda line: True):
    """Places of steps, the last word of a node that was killed left out: it might not have been said."""
    last = {name_of(line): i for i, line in enumerate(lines)}
    return [
        i for i, line in enumerate(lines) if "event" in line and accept(line) and i != last[name_of(line)]
    ]


def moves_something(line):
    """Whether some record moved, or something was said or freed."""
    return bool(line["commands"]) or any(row[1] != row[3] for row in line["rows"])


def is_harmless(line):
    return line["event"] in HARMLESS_EVENTS or not moves_something(line)


@pytest.mark.parametrize("name", GOOD)
def test_the_good_traces_conform_and_have_something_to_change(name):
    report = check(GOOD[name])
    assert report.conforms, render_trace(report)
    assert len(GOOD[name]) > 60
    assert len(step_lines(GOOD[name], moves_something)) > 25
    assert check(renumbered(GOOD[name])).conforms


# ------------------------------------------------------------ lines
@QUICK
@given(name=TRACES, data=st.data())
def test_a_line_that_is_missing_is_seen(name, data):
    lines = list(GOOD[name])
    del lines[data.draw(st.sampled_from(step_lines(lines)))]
    assert ViolationKind.ORDER in kinds(check(lines))


@QUICK
@given(name=TRACES, data=st.data())
def test_a_step_that_mattered_and_is_missing_is_seen_without_its_number(name, data):
    lines = list(GOOD[name])
    gone = lines.pop(data.draw(st.sampled_from(step_lines(lines, lambda line: not is_harmless(line)))))
    report = check(renumbered(lines))
    # A message that nobody received was lost on its way: legal, and somebody waits for it for ever.
    waits = gone["event"] in RECEIVED and any(node.left_open for node in report.nodes)
    assert waits or not report.conforms, gone


@QUICK
@given(name=TRACES, data=st.data())
def test_a_step_that_comes_twice_is_seen(name, data):
    lines = list(GOOD[name])
    at = data.draw(st.sampled_from(step_lines(lines, lambda line: not is_harmless(line))))
    lines.insert(at, lines[at])
    assert not check(renumbered(lines)).conforms, lines[at]


@QUICK
@given(name=TRACES, data=st.data())
def test_steps_in_another_order_are_seen(name, data):
    lines = list(GOOD[name])
    at = data.draw(st.sampled_from(step_lines(lines)))
    later = [i for i in step_lines(lines) if i > at and name_of(lines[i]) == name_of(lines[at])]
    if not later:
        return
    there = data.draw(st.sampled_from(later))
    lines[at], lines[there] = lines[there], lines[at]
    assert ViolationKind.ORDER in kinds(check(lines))


@QUICK
@given(name=TRACES, data=st.data())
def test_a_step_before_its_cause_is_seen_without_its_number(name, data):
    """A step that moved a record goes before the step that last moved the same record."""
    lines = list(GOOD[name])
    pairs = []
    last = {}
    for i in step_lines(lines):
        moved = {(name_of(lines[i]), json.dumps(row[0])) for row in lines[i]["rows"] if row[1] != row[3]}
        pairs += [(last[key], i) for key in moved if key in last]
        last |= dict.fromkeys(moved, i)
    cause, effect = data.draw(st.sampled_from(pairs))
    lines.insert(cause, lines.pop(effect))
    assert not check(renumbered(lines)).conforms, lines[cause]


@QUICK
@given(name=TRACES, data=st.data())
def test_a_node_that_is_cut_short_conforms_and_one_with_a_hole_does_not(name, data):
    lines = list(GOOD[name])
    at = data.draw(st.sampled_from(step_lines(lines)))
    mine = [i for i, line in enumerate(lines) if name_of(line) == name_of(lines[at])]
    prefix = [line for i, line in enumerate(lines) if i not in mine or i < at]
    report = check(prefix)
    assert report.conforms, render_trace(report)
    holed = [line for i, line in enumerate(lines) if i not in mine or i < at or i == mine[-1]]
    assert not check(holed).conforms


# ------------------------------------------------------------ within a line
def paths(value, at=()):
    """Every place of plain data."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*at, index))
    else:
        yield at


def changed(value):
    """Another value of the same shape."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value is None:
        return 7
    head = value[:-1]
    return head + ("1" if value[-1] != "1" else "2") if value[-1].isdigit() else value + "x"


@QUICK
@given(name=TRACES, data=st.data())
def test_any_change_of_rows_or_commands_is_seen(name, data):
    lines = copy.deepcopy(GOOD[name])
    at = data.draw(st.sampled_from(step_lines(lines, lambda line: line["rows"] or line["commands"])))
    where = [p for p in paths(lines[at]) if p[0] in ("rows", "commands")]
    path = data.draw(st.sampled_from(where))
    change(lines[at], path)
    assert not check(lines).conforms, (path, lines[at])


def change(line, path):
    place = line
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = changed(place[path[-1]])


@QUICK
@given(name=TRACES, data=st.data())
def test_a_change_of_a_message_that_was_received_is_seen(name, data):
    """Its sender says otherwise, even where the receiver would have done the same."""
    lines = copy.deepcopy(GOOD[name])
    at = data.draw(st.sampled_from(step_lines(lines, lambda line: line["event"] in RECEIVED)))
    sender = lines[at]["of"]["sender"]
    is_whole = any("end" in line and f"{line['node']}/{line['incarnation']}" == sender for line in lines)
    shown = [p for p in paths(lines[at]) if p[0] == "of" and p[-1] not in ("sender", "tokens", "first_token")]
    path = data.draw(st.sampled_from(shown))
    change(lines[at], path)
    assert not is_whole or not check(lines).conforms, (path, lines[at])


@QUICK
@given(name=TRACES, data=st.data())
def test_an_event_of_another_type_is_seen(name, data):
    lines = copy.deepcopy(GOOD[name])
    at = data.draw(st.sampled_from(step_lines(lines, lambda line: not is_harmless(line))))
    others = [i for i in step_lines(lines) if lines[i]["event"] != lines[at]["event"]]
    other = lines[data.draw(st.sampled_from(others))]
    lines[at]["event"], lines[at]["of"] = other["event"], other["of"]
    assert not check(lines).conforms, lines[at]


# ------------------------------------------------------------ what the laws are about
def moved_free(lines):
    """The free of a lease that waited for its writer, moved before the Closed that let it go."""
    for i in step_lines(lines, lambda line: line["event"] == "Closed" and line["role"] == "decode"):
        freed = [command for command in lines[i]["commands"] if command[0] == "PagesFreed"]
        rows = [row for row in lines[i]["rows"] if row[2] == "QUIET"]
        before = [j for j in step_lines(lines) if j < i and name_of(lines[j]) == name_of(lines[i])]
        if freed and rows and before:
            lines[i]["rows"] = [row for row in lines[i]["rows"] if row not in rows]
            lines[i]["commands"] = [command for command in lines[i]["commands"] if command not in freed]
            lines[before[-1]]["rows"] += rows
            lines[before[-1]]["commands"] += freed
            return lines
    raise AssertionError("no lease in this trace waited for its writer")


def test_a_free_before_the_closed_is_seen_as_that():
    report = check(moved_free(copy.deepcopy(GOOD["plain"])))
    assert {ViolationKind.FREED, ViolationKind.STATE, ViolationKind.CORE} <= kinds(report)
    words = [found.why for found in report.violations if found.kind is ViolationKind.FREED]
    assert "its writer has neither closed nor been cut" in words[0]


@pytest.mark.parametrize("name", GOOD)
def test_every_step_is_held_against_the_core_alone_too(name):
    """Whatever is said in rows and commands, swapped for what another step said."""
    lines = GOOD[name]
    steps = step_lines(lines, moves_something)
    for at, other in zip(steps, steps[1:] + steps[:1], strict=True):
        if lines[at]["commands"] == lines[other]["commands"]:
            continue
        mutant = list(lines)
        mutant[at] = {**lines[at], "commands": lines[other]["commands"]}
        assert not check(mutant).conforms
