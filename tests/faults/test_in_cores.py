"""Faults that real nodes do not get to by themselves, in the decode core: pages go while somebody may write.

Each is one short history: a lease is given out, something happens, and the right core keeps its pages.
"""

import pytest

from kvfence.faults import faulty_decisions
from kvfence.protocol import DecodeConfig, DecodeCore, PageLedger, commands, events
from kvfence.protocol.words import AttemptId, Failed, Failure, LeaseId, Peer, Role

ME, ROUTER = Peer("decode-0", 3), Peer("router", 4)
WRITER, RESTARTED = Peer("prefill-0", 5), Peer("prefill-0", 6)
LEASE = LeaseId(ME.incarnation, 1)
CONFIG = DecodeConfig(page_tokens=4)


def vouched_for(core):
    """The writer is started again, and the new one answers whatever it is asked."""
    out = core.step(events.Hello(RESTARTED, Role.PREFILL, 64, 16, draining=False))
    asked = [command.writer for command in out if isinstance(command, commands.SendClose)]
    if RESTARTED in asked:
        out += core.step(events.Closed(RESTARTED, LEASE, Failed(Failure.ABORTED)))
    return out


HISTORIES = {
    "transfer-outlives-pages/free-on-loss": lambda core: core.step(events.PeerLost(WRITER)),
    "transfer-outlives-pages/free-on-unknown-cut": lambda core: [
        *core.step(events.PeerLost(WRITER)),
        *core.step(events.CutUnknown(WRITER)),
    ],
    "transfer-outlives-pages/free-on-illegal": lambda core: core.step(events.TailCopied(LEASE)),
    "stale-reference/incarnation-unchecked": vouched_for,
}


def frees(name, decisions):
    """Whether pages of a lease become free in the history, though its writer was neither closed nor cut."""
    core = DecodeCore(ME, CONFIG, decisions, PageLedger(8, spare_pages=1))
    core.step(events.Hello(ROUTER, Role.ROUTER, None, None, draining=False))
    core.step(events.Hello(WRITER, Role.PREFILL, 64, 16, draining=False))
    core.step(events.Reserve(ROUTER, AttemptId(ROUTER.incarnation, 1, 1), WRITER, 6, 2, b"h"))
    return any(isinstance(command, commands.PagesFreed) for command in HISTORIES[name](core))


@pytest.mark.parametrize("name", HISTORIES)
def test_the_fault_frees_what_may_still_be_written_and_the_protocol_does_not(name):
    assert frees(name, faulty_decisions([name])())
    assert not frees(name, faulty_decisions([])())
