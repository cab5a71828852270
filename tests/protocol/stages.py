"""Joined rigs brought to a state: where a test of one row begins.

Each function returns a rig whose newest record on the named role is in that state, with the jobs that
would lead on held back.
"""

from tests.protocol.rig import Joined

from kvfence.protocol import DecodeState, PrefillState, RouterState, events


def _expect(rig, name, state):
    assert rig.state(name) is state, f"{name} is {rig.state(name)}, not {state}:\n{rig.story()}"
    return rig


# ---------------------------------------------------------------- decode
def reserved(**kwargs):
    """Pages are leased; the Prefill is still under way."""
    rig = Joined(**kwargs)
    rig.hold(("r", "p0"), ("d0", "p0"))
    rig.submit(10, 9)
    return _expect(rig.run(), "d0", DecodeState.RESERVED)


def verifying(**kwargs):
    """The writer closed; the verification has not answered."""
    rig = Joined(**kwargs)
    rig.hold("VerifySeals", ("d0", "p0"))
    rig.submit(10, 9)
    return _expect(rig.run(), "d0", DecodeState.VERIFYING)


def running(**kwargs):
    """A row with a copied tail, before its first step."""
    rig = Joined(**kwargs)
    rig.hold("step")
    rig.submit(10, 9)
    return _expect(rig.run(), "d0", DecodeState.RUNNING)


def uncopied():
    """A row whose partly filled last page was not copied yet."""
    rig = Joined()
    rig.hold("step", ("d0", "d0"))
    rig.submit(10, 9)
    return _expect(rig.run(), "d0", DecodeState.RUNNING)


def two_rows(**kwargs):
    """Two rows that fill the pool: the older of 8 tokens, the younger of 4."""
    rig = Joined(decode_pages=4, spare=1, **kwargs)
    rig.hold("step")
    rig.submit(8, 8)
    rig.submit(4, 4)
    return _expect(rig.run(), "d0", DecodeState.RUNNING)


def waiting():
    """The only lease that is left waits for a page; a preempted one holds it by a step in flight."""
    rig = two_rows()
    older, younger = rig.decode.leases
    rig.feed("d0", events.StepLaunched(70, (younger,)))
    rig.feed("d0", events.PageWanted(older))
    rig.seats["d0"].rows[older].wants_page = True
    assert rig.lease(index=0).state is DecodeState.WAITING
    return rig


def decode_closing():
    """Aborted while the writer may write; it has not answered."""
    rig = reserved()
    rig.hold(("p0", "d0"))
    rig.leave(1)
    return _expect(rig.run(), "d0", DecodeState.CLOSING)


# ---------------------------------------------------------------- prefill
def computing(**kwargs):
    """One chunk of two is computed and posted; its write and the second chunk are held."""
    rig = Joined(**kwargs)
    rig.hold("StartPrefill", "write", ("p0", "d0"), ("d0", "p0"))
    rig.submit(14, 9)
    rig.run()
    rig.do(("job", "p0"))
    rig.do(("job", "p0"))
    return _expect(rig, "p0", PrefillState.COMPUTING)


def sending(**kwargs):
    """The prompt is computed; its writes are in flight."""
    rig = Joined(**kwargs)
    rig.hold("write", ("p0", "d0"), ("d0", "p0"))
    rig.submit(14, 9)
    return _expect(rig.run(), "p0", PrefillState.SENDING)


def prefill_closing(**kwargs):
    """Aborted with a write in flight."""
    rig = sending(**kwargs)
    rig.leave(1)
    return _expect(rig.run(), "p0", PrefillState.CLOSING)


# ---------------------------------------------------------------- router
def queued():
    """No node fits now: the only decode node is full with another request."""
    rig = Joined(decode_pages=4, spare=1)
    rig.hold("step")
    rig.submit(14, 2)
    rig.run()
    rig.submit(8, 4)
    return _expect(rig.run(), "r", RouterState.QUEUED)


def reserving(**kwargs):
    """Decode was asked and has not answered."""
    rig = Joined(**kwargs)
    rig.hold(("r", "d0"), ("d0", "r"))
    rig.submit(10, 9)
    return _expect(rig.run(), "r", RouterState.RESERVING)


def prefilling(**kwargs):
    """Prefill has the lease."""
    rig = Joined(**kwargs)
    rig.hold("write")
    rig.submit(10, 9)
    return _expect(rig.run(), "r", RouterState.PREFILLING)


def streaming(**kwargs):
    """The first token was delivered."""
    rig = running(**kwargs)
    return _expect(rig, "r", RouterState.STREAMING)


def router_closing():
    """The client has left; decode has not said that the attempt ended."""
    rig = prefilling()
    rig.hold(("d0", "r"))
    rig.leave(1)
    return _expect(rig.run(), "r", RouterState.CLOSING)


DECODE_STAGES = {
    DecodeState.RESERVED: reserved,
    DecodeState.VERIFYING: verifying,
    DecodeState.RUNNING: running,
    DecodeState.WAITING: waiting,
    DecodeState.CLOSING: decode_closing,
}
PREFILL_STAGES = {
    PrefillState.COMPUTING: computing,
    PrefillState.SENDING: sending,
    PrefillState.CLOSING: prefill_closing,
}
ROUTER_STAGES = {
    RouterState.QUEUED: queued,
    RouterState.RESERVING: reserving,
    RouterState.PREFILLING: prefilling,
    RouterState.STREAMING: streaming,
    RouterState.CLOSING: router_closing,
}
