"""What a node was told by another is what that other says it sent, in the order in which it sent it.

Rules: between two incarnations messages keep their order and may be lost, so that what was received is a
subsequence of what was sent. Whether it was sent can be said where the sender's trace is whole; where it is
a prefix, up to its end; where it is not there, not at all. Tokens are no commands of a core: one that was
received belongs to an attempt that its sender has started, at the next position that was heard of it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kvfence.protocol import commands, events
from kvfence.protocol.trace import show
from kvfence.protocol.words import AttemptId, Peer
from kvfence.verification.conformance_steps import Place, Step, Violation, ViolationKind

Message = tuple[str, ...]

# What travels, by the type that it has where it is received: fields that sender and receiver both know.
_SENT: Mapping[type, Callable[[Any], tuple[Peer, tuple[object, ...]]]] = MappingProxyType(
    {
        commands.SendReserve: lambda c: (c.decode, ("Reserve", c.attempt, c.writer, c.tokens, c.max_tokens)),
        commands.SendPrefill: lambda c: (c.prefill, ("Prefill", c.attempt, c.decode, c.lease, c.pages)),
        commands.SendAbort: lambda c: (c.peer, ("Abort", c.attempt)),
        commands.SendReserved: lambda c: (c.router, ("Reserved", c.attempt, c.lease, c.pages)),
        commands.SendReserveRefused: lambda c: (c.router, ("ReserveRefused", c.attempt, c.refusal)),
        commands.SendEnded: lambda c: (c.router, ("AttemptEnded", c.attempt, c.end)),
        commands.SendClose: lambda c: (c.writer, ("Close", c.lease)),
        commands.SendLowestLive: lambda c: (c.writer, ("LowestLive", c.sequence)),
        commands.SendClosed: lambda c: (c.decode, ("Closed", c.lease, c.outcome)),
    }
)
_RECEIVED: Mapping[type, Callable[[Any], tuple[object, ...]]] = MappingProxyType(
    {
        events.Reserve: lambda e: ("Reserve", e.attempt, e.writer, e.tokens, e.max_tokens),
        events.Prefill: lambda e: ("Prefill", e.attempt, e.decode, e.lease, e.pages),
        events.Abort: lambda e: ("Abort", e.attempt),
        events.Reserved: lambda e: ("Reserved", e.attempt, e.lease, e.pages),
        events.ReserveRefused: lambda e: ("ReserveRefused", e.attempt, e.refusal),
        events.AttemptEnded: lambda e: ("AttemptEnded", e.attempt, e.end),
        events.Close: lambda e: ("Close", e.lease),
        events.LowestLive: lambda e: ("LowestLive", e.sequence),
        events.Closed: lambda e: ("Closed", e.lease, e.outcome),
    }
)


@dataclass(slots=True)
class _Link:
    """One ordered pair of incarnations. `received` waits for the sender's trace to be known to its end."""

    sent: list[Message] = field(default_factory=list)
    received: list[tuple[Message, Place]] = field(default_factory=list)


class MessageCheck:
    """All links of a trace. `take` every step of every node, then ask for `violations` once."""

    def __init__(self) -> None:
        self._links: dict[tuple[Peer, Peer], _Link] = {}
        self._started: dict[Peer, set[AttemptId]] = {}
        self._tokens: list[tuple[Peer, Peer, AttemptId, Place]] = []
        self._seen: set[tuple[Peer, AttemptId]] = set()

    @property
    def senders(self) -> set[Peer]:
        """Incarnations from which something was received."""
        heard = {sender for (sender, _), link in self._links.items() if link.received}
        return heard | {sender for sender, _, _, _ in self._tokens}

    def take(self, step: Step) -> None:
        """Take note of what was sent and received."""
        event = step.event
        if type(event) in _RECEIVED:
            message = _plain(_RECEIVED[type(event)](event))
            self._link(event.sender, step.peer).received.append((message, step.place))  # type: ignore[union-attr]
        elif isinstance(event, events.TokenMade) and (event.sender, event.attempt) not in self._seen:
            self._seen.add((event.sender, event.attempt))
            self._tokens.append((event.sender, step.peer, event.attempt, step.place))
        for command in step.commands:
            if isinstance(command, commands.StartRow):
                self._started.setdefault(step.peer, set()).add(command.attempt)
            if type(command) in _SENT:
                target, parts = _SENT[type(command)](command)
                self._link(step.peer, target).sent.append(_plain(parts))

    def violations(self, whole: Mapping[Peer, bool]) -> Iterator[Violation]:
        """Yield what was received and never sent. `whole` has every node whose trace there is."""
        for (sender, receiver), link in self._links.items():
            if sender in whole:
                yield from _unsent(sender, receiver, link, is_whole=whole[sender])
        for sender, receiver, attempt, place in self._tokens:
            if whole.get(sender) and attempt not in self._started.get(sender, ()):
                why = f"a token of attempt {show(attempt)} came from {show(sender)}, which never started it"
                yield Violation(ViolationKind.MESSAGE, place, receiver.node, why)

    def _link(self, sender: Peer, receiver: Peer) -> _Link:
        return self._links.setdefault((sender, receiver), _Link())


def _unsent(sender: Peer, receiver: Peer, link: _Link, *, is_whole: bool) -> Iterator[Violation]:
    """Find for each received message the next place at which it was sent; yield those that have none."""
    places: dict[Message, list[int]] = {}
    for number, message in enumerate(link.sent):
        places.setdefault(message, []).append(number)
    after = 0
    for message, place in link.received:
        sent = places.get(message, [])
        next_one = bisect_left(sent, after)
        if next_one < len(sent):
            after = sent[next_one] + 1
        elif is_whole:
            why = f"{' '.join(message)} came from {show(sender)}, which did not send it then"
            yield Violation(ViolationKind.MESSAGE, place, receiver.node, why)
        else:
            return  # sent after the last line that its sender could write


def _plain(parts: tuple[object, ...]) -> Message:
    return tuple(part if isinstance(part, str) else str(show(part)) for part in parts)
