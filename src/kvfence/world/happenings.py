"""Everything that can happen next in a world, one small tuple each.

The first group follows from what the nodes did: it is the world's to enumerate (`World.enabled`). The
second is weather: what clients, networks and machines do by themselves; whoever drives the world decides
when, and how often.
"""

from typing import NamedTuple

from kvfence.protocol.words import LeaseId, Peer, Timer


# ---------------------------------------------------------------- what follows
class Deliver(NamedTuple):
    """The oldest message of a wire arrives."""

    sender: Peer
    receiver: Peer


class Land(NamedTuple):
    """The next piece of a one-sided write lands in the target pool."""

    writer: Peer
    lease: LeaseId
    batch: int


class Complete(NamedTuple):
    """The writer hears that a batch was written."""

    writer: Peer
    lease: LeaseId
    batch: int


class Stop(NamedTuple):
    """The writer hears that a batch was stopped before all of it had left."""

    writer: Peer
    lease: LeaseId
    batch: int


class Verify(NamedTuple):
    """Decode looks at the seals of a hand-over."""

    decode: Peer
    lease: LeaseId


class Launch(NamedTuple):
    """A node launches a forward pass over what is ready."""

    node: Peer


class Retire(NamedTuple):
    """The forward pass is done: it writes its slots, its results are released."""

    node: Peer


class Fire(NamedTuple):
    """A timer fires."""

    node: Peer
    timer: Timer


class CutDone(NamedTuple):
    """It is proven that a writer incarnation can no longer write to a decode pool."""

    decode: Peer
    writer: Peer


class Destroyed(NamedTuple):
    """A connection for pages is gone locally: nothing reads the writer's pages any more."""

    writer: Peer
    decode: Peer


# ---------------------------------------------------------------- weather
class Submit(NamedTuple):
    """A client sends its request to a router."""

    router: Peer
    request: int


class Leave(NamedTuple):
    """A client goes away."""

    request: int


class Drop(NamedTuple):
    """The oldest message of a wire is lost."""

    sender: Peer
    receiver: Peer


class Repeat(NamedTuple):
    """The oldest message of a wire arrives, and will arrive again."""

    sender: Peer
    receiver: Peer


class FailWrite(NamedTuple):
    """The transport reports a batch as failed. `quiet`: it proves that nothing more of it will land."""

    writer: Peer
    lease: LeaseId
    batch: int
    quiet: bool


class Vanish(NamedTuple):
    """What is left of a write that nobody waits for will never land."""

    writer: Peer
    lease: LeaseId
    batch: int


class CutFails(NamedTuple):
    """A cut cannot be proven."""

    decode: Peer
    writer: Peer


class Reconnect(NamedTuple):
    """A new connection for pages stands: nothing that was posted on an earlier one will land."""

    writer: Peer
    decode: Peer


class Announce(NamedTuple):
    """A node says hello to another one."""

    sender: Peer
    receiver: Peer


class Suspect(NamedTuple):
    """A node takes another one for lost (it was silent too long, or is known to be dead)."""

    observer: Peer
    peer: Peer


class Crash(NamedTuple):
    """A process dies. What it had posted may land all the same."""

    peer: Peer


class Restart(NamedTuple):
    """A node comes back as a new incarnation."""

    peer: Peer


class Pause(NamedTuple):
    """A process is stopped: it does nothing, and its writes stand still."""

    peer: Peer


class Resume(NamedTuple):
    """A stopped process goes on as if nothing had been."""

    peer: Peer


Following = Deliver | Land | Complete | Stop | Verify | Launch | Retire | Fire | CutDone | Destroyed
Weather = (
    Submit
    | Leave
    | Drop
    | Repeat
    | FailWrite
    | Vanish
    | CutFails
    | Reconnect
    | Announce
    | Suspect
    | Crash
    | Restart
    | Pause
    | Resume
)
Happening = Following | Weather
