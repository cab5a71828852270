"""A router's requests: submitted once, ended once, one attempt at a time, no token after the end.

Rules, from laws 7 and 9: each Submitted has at most one FinishRequest, and a FinishRequest its Submitted.
Attempts count from 1, and before attempt n+1 is opened the abort of n was sent to both of its nodes.
A request without an end is no violation: the node, or its trace, may have been ended before it.
"""

from dataclasses import dataclass, field

from kvfence.protocol import commands, events
from kvfence.protocol.words import AttemptId, Peer
from kvfence.verification.conformance_rows import Found
from kvfence.verification.conformance_steps import Step, ViolationKind


@dataclass(slots=True)
class _Request:
    attempt: int = 0
    writer: Peer | None = None
    nodes: set[Peer] = field(default_factory=set)
    aborted: set[Peer] = field(default_factory=set)
    position: int | None = None


class RequestCheck:
    """The requests of one router."""

    def __init__(self) -> None:
        self._open: dict[int, _Request] = {}
        self._over: set[int] = set()

    def take(self, step: Step) -> Found:
        """Look at one step; yield what is wrong with it."""
        event = step.event
        if isinstance(event, events.Submitted):
            if event.request in self._open or event.request in self._over:
                yield ViolationKind.END, f"request {event.request} is submitted twice"
            self._open[event.request] = _Request()
        for command in step.commands:
            match command:
                case commands.FinishRequest():
                    yield from self._finish(command.request)
                case commands.SendReserve():
                    yield from self._reserve(command)
                case commands.SendAbort():
                    self._abort(command.peer, command.attempt)
                case commands.DeliverToken():
                    yield from self._deliver(command)

    def _finish(self, request: int) -> Found:
        if self._open.pop(request, None) is None:
            was = "has ended before" if request in self._over else "was never submitted"
            yield ViolationKind.END, f"request {request} ends and {was}"
        self._over.add(request)

    def _reserve(self, command: commands.SendReserve) -> Found:
        number, name = command.attempt.number, command.attempt.request
        request = self._open.get(name)
        if request is None:
            yield ViolationKind.END, f"attempt {number} of request {name} is opened, and the request is not"
            return
        if number != request.attempt + 1:
            yield ViolationKind.END, f"attempt {number} of request {name} follows attempt {request.attempt}"
        left = request.nodes - request.aborted
        if left:
            names = ", ".join(sorted(peer.node for peer in left))
            yield (
                ViolationKind.END,
                f"attempt {number} of request {name} is opened, and {names} heard no abort",
            )
        request.attempt, request.writer = number, command.writer
        request.nodes, request.aborted = {command.decode, command.writer}, set()

    def _abort(self, peer: Peer, attempt: AttemptId) -> None:
        request = self._open.get(attempt.request)
        if request is not None and request.attempt == attempt.number:
            request.aborted.add(peer)

    def _deliver(self, command: commands.DeliverToken) -> Found:
        request = self._open.get(command.request)
        if request is None:
            yield ViolationKind.END, f"request {command.request} is given a token, and is not open"
            return
        if request.position is not None and command.position != request.position + 1:
            yield (
                ViolationKind.END,
                f"request {command.request} is given position {command.position} out of its order",
            )
        request.position = command.position
        if request.writer is not None:  # It is done with the attempt: nothing is left to abort there.
            request.nodes.discard(request.writer)
