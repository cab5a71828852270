"""Everything that can happen next in a world, one small tuple each.

The first group follows from what the nodes did: it is the world's to enumerate (`World.enabled`). The
second is weather: what clients, networks and machines do by themselves; whoever drives the world decides
when, and how often.
"""

from typing import NamedTuple, TypeVar

from kvfence.protocol.words import LeaseId, Peer, Timer

H = TypeVar("H", bound=tuple[object, ...])


def _equal(one: tuple[object, ...], other: object) -> bool:
    return type(one) is type(other) and tuple.__eq__(one, other)


def _differ(one: tuple[object, ...], other: object) -> bool:
    return not _equal(one, other)


def _a_kind_of_its_own(kind: type[H]) -> type[H]:
    """Two happenings of different kinds are never equal, though named tuples alone would be."""
    kind.__eq__ = _equal  # type: ignore[method-assign]
    kind.__ne__ = _differ  # type: ignore[method-assign,assignment]
    kind.__hash__ = tuple.__hash__  # type: ignore[method-assign]
    return kind


# ---------------------------------------------------------------- what follows
@_a_kind_of_its_own
class Deliver(NamedTuple):
    """The oldest message of a wire arrives."""

    sender: Peer
    receiver: Peer


@_a_kind_of_its_own
class Land(NamedTuple):
    """The next piece of a one-sided write lands in the target pool."""

    writer: Peer
    lease: LeaseId
    batch: int


@_a_kind_of_its_own
class Complete(NamedTuple):
    """The writer hears that a batch was written."""

    writer: Peer
    lease: LeaseId
    batch: int


@_a_kind_of_its_own
class Stop(NamedTuple):
    """The writer hears that a batch was stopped before all of it had left."""

    writer: Peer
    lease: LeaseId
    batch: int


@_a_kind_of_its_own
class Verify(NamedTuple):
    """Decode looks at the seals of a hand-over."""

    decode: Peer
    lease: LeaseId


@_a_kind_of_its_own
class Launch(NamedTuple):
    """A node launches a forward pass over what is ready."""

    node: Peer


@_a_kind_of_its_own
class Retire(NamedTuple):
    """The forward pass is done: it writes its slots, its results are released."""

    node: Peer


@_a_kind_of_its_own
class Fire(NamedTuple):
    """A timer fires."""

    node: Peer
    timer: Timer


@_a_kind_of_its_own
class CutDone(NamedTuple):
    """It is proven that a writer incarnation can no longer write to a decode pool."""

    decode: Peer
    writer: Peer


@_a_kind_of_its_own
class Destroyed(NamedTuple):
    """A connection for pages is gone locally: nothing reads the writer's pages any more."""

    writer: Peer
    decode: Peer


# ---------------------------------------------------------------- weather
@_a_kind_of_its_own
class Submit(NamedTuple):
    """A client sends its request to a router."""

    router: Peer
    request: int


@_a_kind_of_its_own
class Leave(NamedTuple):
    """A client goes away."""

    request: int


@_a_kind_of_its_own
class Drop(NamedTuple):
    """The oldest message of a wire is lost."""

    sender: Peer
    receiver: Peer


@_a_kind_of_its_own
class Repeat(NamedTuple):
    """The oldest message of a wire arrives, and will arrive again."""

    sender: Peer
    receiver: Peer


@_a_kind_of_its_own
class FailWrite(NamedTuple):
    """The transport reports a batch as failed. `quiet`: it proves that nothing more of it will land."""

    writer: Peer
    lease: LeaseId
    batch: int
    quiet: bool


@_a_kind_of_its_own
class Vanish(NamedTuple):
    """What is left of a write that nobody waits for will never land."""

    writer: Peer
    lease: LeaseId
    batch: int


@_a_kind_of_its_own
class CutFails(NamedTuple):
    """A cut cannot be proven."""

    decode: Peer
    writer: Peer


@_a_kind_of_its_own
class Reconnect(NamedTuple):
    """A new connection for pages stands: nothing that was posted on an earlier one will land."""

    writer: Peer
    decode: Peer


@_a_kind_of_its_own
class Announce(NamedTuple):
    """A node says hello to another one."""

    sender: Peer
    receiver: Peer


@_a_kind_of_its_own
class Suspect(NamedTuple):
    """A node takes another one for lost (it was silent too long, or is known to be dead)."""

    observer: Peer
    peer: Peer


@_a_kind_of_its_own
class Crash(NamedTuple):
    """A process dies. What it had posted may land all the same."""

    peer: Peer


@_a_kind_of_its_own
class Restart(NamedTuple):
    """A node comes back as a new incarnation."""

    peer: Peer


@_a_kind_of_its_own
class Pause(NamedTuple):
    """A process is stopped: it does nothing, and its writes stand still."""

    peer: Peer


@_a_kind_of_its_own
class Resume(NamedTuple):
    """A stopped process goes on as if nothing had been."""

    peer: Peer


@_a_kind_of_its_own
class Stray(NamedTuple):
    """A decode node's executor speaks of a lease that is no row yet: an event that should not have come."""

    decode: Peer
    lease: LeaseId


@_a_kind_of_its_own
class RingLate(NamedTuple):
    """A timer rings as it was set before it was set anew, or taken back: its generation is an old one."""

    node: Peer
    timer: Timer


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
    | Stray
    | RingLate
)
Happening = Following | Weather
