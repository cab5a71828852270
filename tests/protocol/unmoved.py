"""How a test says that an event changes nothing: the node says what it must, and every record stays.

`standing` is what the nodes' metrics read; `STRANGE` is what they count when something came that has no row.
"""

from kvfence.protocol import RouterCore
from kvfence.protocol.words import End, EndReason

STRANGE = ("illegal", "ignored_in_closing", "unknown_sender", "misdirected")


def standing(rig):
    """How many records each node has in each state."""
    return {name: counts_of(seat.core) for name, seat in rig.seats.items()}


def counts_of(core):
    return core.request_counts if isinstance(core, RouterCore) else core.lease_counts


def strange(rig, name):
    """What the node counted as strange."""
    counts = rig.core(name).counts
    return {what: counts[what] for what in STRANGE if what in counts}


def unmoved(rig, name, event, *said):
    """The node takes the event, says just that, finds it not strange, and every record stands where it stood."""
    before, odd = standing(rig), strange(rig, name)
    out = rig.feed(name, event)
    assert [type(command) for command in out] == list(said)
    assert standing(rig) == before
    assert strange(rig, name) == odd
    return out


def goes_on(rig):
    """Let everything happen that was held: every client gets its whole answer, and every page comes home.

    What was cut meanwhile is started again afterwards, as its launcher would, and serves what is left.
    """
    rig.held.clear()
    rig.retire_all()
    rig.run()
    for writer, _ in sorted(rig.cuts):
        if rig.peer(writer.node) == writer:
            rig.crash(writer.node)
    rig.greet_all()
    rig.run().assert_home()
    for number, prompt in rig.prompts.items():
        first = len(prompt)
        assert rig.answers[number] == list(range(first, first + rig.max_tokens[number])), rig.story()
        assert rig.finished[number] == End(EndReason.LENGTH)
    for name in rig.seats:
        assert "illegal" not in rig.core(name).counts, rig.story()
