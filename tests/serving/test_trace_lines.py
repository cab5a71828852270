"""The lines of a trace: one for what a core was made with, one a step, one for a node that stopped."""

from tests.protocol.rig import Joined
from tests.protocol.test_prefill import Shelf

from kvfence.protocol import events
from kvfence.protocol.words import Role
from kvfence.serving.trace_lines import TraceLines, keep_step


def kept(core, event, at_ms=1.25):
    return keep_step(core, event, core.step(event), at_ms)


def test_the_first_line_says_what_the_core_was_made_with():
    rig = Joined(decode_pages=9, spare=2)
    line = TraceLines(rig.peer("d0"), Role.DECODE).start(rig.decode, rig.decode.ledger, {"fence": "sealed"})
    assert (line["node"], line["incarnation"], line["role"], line["step"]) == ("d0", "3", "decode", 0)
    assert (line["start"]["pages"], line["start"]["spare_pages"], line["start"]["fence"]) == (9, 2, "sealed")
    assert line["start"]["config"]["close_retries_max"] == rig.decode.config.close_retries_max
    assert "pages" not in TraceLines(rig.peer("r"), Role.ROUTER).start(rig.router, None, {})["start"]


def test_a_step_is_numbered_and_shows_event_rows_and_commands():
    rig = Joined()
    lines = TraceLines(rig.peer("r"), Role.ROUTER)
    step = kept(rig.router, events.Submitted(1, 8, 4))
    first = lines.step(step)
    assert (first["step"], first["ms"], first["event"]) == (1, 1.25, "Submitted")
    assert [row[1:3] for row in first["rows"]] == [["ABSENT", "SUBMIT_FITS"], ["QUEUED", "ROOM"]]
    assert [kind for kind, _ in first["commands"]] == ["SetTimer", "SetTimer", "SendReserve"]
    assert lines.step(kept(rig.router, events.ClientGone(1)))["step"] == 2
    assert lines.end() == {"node": "r", "incarnation": "1", "role": "router", "step": 3, "end": "stopped"}


def test_a_kept_step_does_not_change_with_the_core():
    rig = Joined()
    step = kept(rig.router, events.Submitted(1, 8, 4))
    rig.router.step(events.ClientGone(1))
    assert TraceLines(rig.peer("r"), Role.ROUTER).step(step)["rows"][0][2] == "SUBMIT_FITS"


def test_pages_that_the_prefix_index_took_are_shown_in_the_step_in_which_it_took_them():
    rig = Joined(prefix=Shelf)
    lines, shown = TraceLines(rig.peer("p0"), Role.PREFILL), []
    step_of = rig.prefill.step

    def step(event):
        said = step_of(event)
        shown.append(lines.step(keep_step(rig.prefill, event, said, 0.0)))
        return said

    rig.prefill.step = step
    rig.submit(8, 2)
    rig.run()
    (published,) = [line for line in shown if "published" in line]
    assert published["event"] == "ChunkComputed"
    assert [len(pages) for pages in published["published"].values()] == [2]
