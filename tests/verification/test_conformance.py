"""Whole traces: what a file may hold, what is reported of it, and the core that is told the same again."""

import contextlib
import copy
import json
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.house.source import ROOT
from tests.protocol.test_prefill import Shelf
from tests.protocol.test_schedules import CHOICES, come_home, network_faults, play
from tests.protocol.test_schedules import STEPS_MAX as SCHEDULE_STEPS_MAX
from tests.verification.recorded import Recorded, check, kinds

from kvfence.faults import faulty_decisions
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.verification import ViolationKind, check_trace, render_trace
from kvfence.verification.conformance import VIOLATIONS_MAX

SHAPES = (
    {},
    {"prefills": 2, "decodes": 2, "spare": 1, "batch_pages": 1},
    {"prefix": Shelf, "same_prompts": True},
)
QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def served():
    rig = Recorded()
    rig.submit(10, 4)
    rig.run()
    return rig.stop()


GOOD = served()


def only(lines, node):
    return [line for line in lines if line.get("node") == node]


def why(lines):
    return [(found.kind.value, found.why) for found in check(lines).violations]


# ------------------------------------------------------------ healthy runs
@QUICK
@given(choices=CHOICES, shape=st.sampled_from(SHAPES))
def test_any_schedule_of_the_joined_rig_conforms(choices, shape):
    rig = Recorded(prefill_pages=12, decode_pages=12, **shape)
    play(rig, choices)
    come_home(rig)
    report = check(rig.stop())
    assert report.conforms, render_trace(report)


def test_a_network_that_repeats_and_reorders_does_not_conform():
    """Ours does neither: what came twice, or too early, was not sent then."""
    dice, found = random.Random(4), set()
    for _ in range(20):
        rig = Recorded(prefill_pages=12, decode_pages=12)
        play(rig, [dice.randrange(3_001) for _ in range(SCHEDULE_STEPS_MAX)], more=network_faults)
        found |= kinds(check(rig.stop()))
    assert found == {ViolationKind.MESSAGE}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("false-completion/done-before-written", ViolationKind.CLOSED),
        ("transfer-outlives-pages/free-on-abort", ViolationKind.FREED),
        ("transfer-outlives-pages/sources-freed-early", ViolationKind.FREED),
        ("transfer-outlives-pages/closed-before-quiet", ViolationKind.CLOSED),
        ("transfer-outlives-pages/close-asked-once", ViolationKind.CORE),
        ("step-outlives-pages/free-under-step", ViolationKind.FREED),
        ("stale-reference/late-prefill", ViolationKind.CLOSED),
        ("response-misroute/two-attempts", ViolationKind.END),
    ],
)
def test_a_fault_of_a_core_is_named_by_the_law_that_it_breaks_and_by_the_shipped_core(fault, kind):
    found = set()
    for seed in range(12):
        dice = random.Random(seed)
        rig = Recorded(
            prefill_pages=12,
            decode_pages=12,
            decisions=faulty_decisions([fault])(),
            checks_laws=False,
            prefix=Shelf,
            same_prompts=True,
        )
        rig.expects_no_late_write = False
        # The rig's own assertions may see what follows from the fault; the trace is there all the same.
        with contextlib.suppress(AssertionError):
            play(rig, [dice.randrange(3_001) for _ in range(SCHEDULE_STEPS_MAX)])
        found |= kinds(check(rig.lines))
        if {kind, ViolationKind.CORE} <= found:
            return
    raise AssertionError(f"found only {found}")


# ------------------------------------------------------------ files
def test_files_are_read_together_and_reported(tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    header = json.dumps({"trace": 1, "deployment": "d", "version": "0"})
    first.write_text("\n".join([header, *(json.dumps(line) for line in only(GOOD, "r"))]) + "\n")
    rest = [line for line in GOOD if line["node"] != "r"]
    second.write_text("\n" + "\n".join(json.dumps(line) for line in rest))
    report = check_trace([first, second])
    assert report.conforms
    assert render_trace(report).splitlines() == [
        f"d0/3 (decode): {len(only(GOOD, 'd0')) - 2} steps, whole",
        f"p0/2 (prefill): {len(only(GOOD, 'p0')) - 2} steps, whole",
        f"r/1 (router): {len(only(GOOD, 'r')) - 2} steps, whole",
        "The trace conforms: it is a path of the tables.",
    ]
    alone = check_trace([first])
    assert alone.conforms
    assert alone.unheard == (Peer("d0", 3),)
    assert "no trace of d0/3: what it sent cannot be checked" in render_trace(alone)


def test_a_file_that_is_not_there_is_the_operators_to_mend(tmp_path):
    with pytest.raises(OperatorError, match=r"cannot be read: No such file .* kvfence serve --trace wrote"):
        check_trace([tmp_path / "nowhere"])


def test_a_file_without_a_node_does_not_conform(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"\n")
    report = check_trace([path])
    assert not report.conforms
    assert render_trace(report) == "There is no trace in this: no node has written a line."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[]", "a line is an object"),
        (b'{"trace":2,"deployment":"d","version":"0"}', "traces of the formats"),
        (b'{"trace":1}', "missing required field"),
        (b'{"node":"x"}', "missing required field"),
        (b'{"node":"x","incarnation":"1","role":"router","step":3,"start":{}}', "first line is its step 0"),
        (b'{"node":"x","incarnation":"one","role":"router","step":1,"end":"stopped"}', "invalid literal"),
    ],
)
def test_a_whole_line_that_no_node_writes_is_found(line, said):
    (found,) = check([*GOOD, line]).violations
    assert found.kind is ViolationKind.UNREADABLE
    assert said in found.why
    assert found.place.line == len(GOOD) + 1


def test_a_step_with_fields_that_no_step_has_is_found():
    lines = [dict(line) for line in GOOD]
    at = next(i for i, line in enumerate(lines) if line.get("event") == "Submitted")
    lines[at]["of"] = {**lines[at]["of"], "prompt": "what tenant A wrote"}
    assert ("unreadable", "a Submitted has not the fields that are shown: prompt") in why(lines)


def test_the_document_explains_every_field_of_a_line():
    text = (ROOT / "docs" / "traces.md").read_text()
    table = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    explained = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    shared = Recorded(prefix=Shelf)
    shared.submit(8, 2)
    shared.run()
    written = {key for line in [*GOOD, *shared.stop()] for key in line}
    assert explained == written | {"trace", "deployment", "version"}


# ------------------------------------------------------------ beginnings and ends
def test_steps_are_counted_from_the_first_line_to_the_last():
    router = only(GOOD, "r")
    assert ("order", "its first line is not there") in why(router[1:])
    assert ("order", "its first line comes twice") in why([router[0], *router])
    assert ("order", "step 2 follows step 0") in why([router[0], *router[2:]])
    assert ("order", f"step {len(router)} comes after its last line") in why(
        [*router, {**router[-2], "step": len(router)}]
    )


def test_a_first_line_that_no_core_was_made_with_is_found():
    prefill = only(GOOD, "p0")
    start = prefill[0]["start"]
    wrong = ({"pages": None}, {"config": {"a": 1}}, {"faults": 5}, {"without": "seal"}, {"without": [5]})
    for bad in ({}, *({**start, **more} for more in wrong)):
        (found, *_) = check([{**prefill[0], "start": bad}, *prefill[1:]]).violations
        assert found.kind is ViolationKind.UNREADABLE


def test_a_torn_line_is_the_last_word_of_a_node_that_was_killed():
    cut = [line for line in GOOD if "end" not in line or line["node"] != "p0"]
    torn = b'{"node":"p0","incarnation":"2","role":"pre'
    report = check([*cut, torn])
    assert report.conforms
    assert report.torn == 1
    assert "1 lines were cut short with the nodes that wrote them" in render_trace(report)
    assert "a prefix: it was ended, or runs" in render_trace(report)
    assert check([*cut, b'{"no']).conforms  # Whose it was is not in it: one was killed.
    words = ("unreadable", "the line is not whole, and no node was ended in the midst of it")
    assert why([*GOOD, torn]) == [words]
    assert why([*cut, torn, torn]) == [words]
    assert why([*GOOD, b'{"no']) == [words]


def test_what_is_not_home_and_what_no_table_knows_is_reported():
    rig = Recorded()
    rig.hold("write")
    rig.submit(10, 4)
    rig.run()
    text = render_trace(check(rig.stop()))
    assert "r/1 (router): 4 steps, whole, 1 requests not home" in text
    assert "1 leases not home" in text


def test_the_first_violations_of_each_node_are_kept():
    lines = [line for line in GOOD if line["node"] != "d0"] + only(GOOD, "d0")[1:] * VIOLATIONS_MAX
    report = check(lines)
    assert len([found for found in report.violations if found.node == "d0"]) == VIOLATIONS_MAX
    assert f"The trace does not conform: {len(report.violations)} violations." in render_trace(report)


# ------------------------------------------------------------ the core, told again
def test_without_a_fence_a_bad_manifest_is_believed_by_the_core_too():
    lines = [dict(line) for line in GOOD]
    decode = next(line for line in lines if line["node"] == "d0" and "start" in line)
    decode["start"] = {**decode["start"], "fence": "off"}
    assert check(lines).conforms
    assert [found.kind for found in check(with_bad_manifest(lines)).violations] == [
        ViolationKind.CLOSED,
        ViolationKind.CORE,
    ]


def test_a_layer_that_was_left_out_is_left_out_of_the_core_too_and_told():
    lines = [dict(line) for line in GOOD]
    for line in lines:
        if "start" in line:
            line["start"] = {**line["start"], "without": ["manifest"], "faults": ["some/fault"]}
    report = check(lines)
    assert report.conforms
    assert report.nodes[0].unsafe == ("fault some/fault", "without manifest")
    assert ", fault some/fault, without manifest" in render_trace(report)
    assert [found.kind for found in check(with_bad_manifest(lines)).violations][-1] is ViolationKind.CORE
    lines[0]["start"] = {**lines[0]["start"], "without": ["manifesto"]}
    assert any(
        words.startswith("'manifesto' is no layer that can be switched off") for _, words in why(lines)
    )


def with_bad_manifest(lines):
    """The writer claims a page more, in what it sent and in what decode heard."""
    lines = copy.deepcopy(lines)
    for line in lines:
        for said in [line.get("of", {}), *(fields for _, fields in line.get("commands", ()))]:
            for outcome in (said.get("outcome") or {}, said):
                if isinstance(outcome, dict) and "manifest" in outcome:
                    outcome["manifest"]["pages"] += 1
    return lines


def test_a_step_that_the_core_cannot_take_is_found():
    lines = [dict(line) for line in GOOD]
    launches = [i for i, line in enumerate(lines) if line.get("event") == "StepLaunched"]
    again = next(i for i in launches if lines[i]["node"] == "d0")
    lines.insert(again + 1, {**lines[again], "step": lines[again]["step"] + 1})
    words = [text for kind, text in why(lines) if kind == "core"]
    assert words[0] == "the core cannot take this step: step 1 is launched twice"


def test_the_first_difference_to_the_core_is_told_and_no_other():
    lines = [dict(line) for line in GOOD]
    at = next(i for i, line in enumerate(lines) if line.get("event") == "Submitted")
    lines[at]["commands"] = lines[at]["commands"][:-1]
    lines[at + 1]["commands"] = []
    words = [text for kind, text in why(lines) if kind == "core"]
    assert len(words) == 1
    assert words[0].startswith("the core's commands are others: 1 more, as ['SendReserve'")
