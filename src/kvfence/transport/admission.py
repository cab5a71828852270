"""Who may write to a pool: one rule for every transport.

    claim (proven by the handshake) -> admit -> a Session is registered -> cut -> proven, forgotten

Rules: incarnations of a node are ordered; one older than any that was admitted, or not newer than one that
was cut, is refused. A newer one replaces nothing: the older stays registered until it is cut itself. One
incarnation has one registration at a time; it gets another only when the earlier one is proven quiet. A
revocation and an admission exclude each other, so that no writer slips in beside a cut.

It opens no socket and maps no memory; a `Session` does what its transport needs for a proof.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kvfence.protocol.words import Peer
from kvfence.transport.base import CutResult, Denial, WriterDenied

NODES_MAX = 1024  # writer nodes that are remembered; each has proven the deployment's secret


class Session(Protocol):
    """One registration of one writer incarnation."""

    def quiesce(self) -> CutResult:
        """Take the right to write away and say what is proven. Called with the admission's lock held.

        It must not wait for a thread that itself waits for the admission.
        """

    def end(self) -> None:
        """The receiver is closed and its threads have ended: give up what a proof would still need."""


SessionT = TypeVar("SessionT", bound=Session)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a writer said of itself, after it had proven the secret."""

    writer: Peer
    target: Peer
    layout: bytes


class Admission(Generic[SessionT]):
    """The registrations of one receiver. Safe to call from any thread."""

    def __init__(self, me: Peer, layout: bytes) -> None:
        self._me = me
        self._layout = layout
        self._lock = threading.Lock()
        self._sessions: dict[Peer, SessionT] = {}
        self._lowest_admissible: dict[str, int] = {}
        self._closed = False

    def admit(self, claim: Claim, open_session: Callable[[], SessionT]) -> SessionT:
        """Register the claim's writer, or raise WriterDenied. `open_session` runs under the lock."""
        with self._lock:
            self._check(claim)
            self._settle_earlier(claim.writer)
            session = open_session()
            self._sessions[claim.writer] = session
            self._lowest_admissible[claim.writer.node] = claim.writer.incarnation
            return session

    def cut(self, peer: Peer) -> CutResult:
        """Revoke the incarnation and all older ones of its node; PROVEN forgets the registration."""
        with self._lock:
            lowest = self._lowest_admissible.get(peer.node, 0)
            self._lowest_admissible[peer.node] = max(lowest, peer.incarnation + 1)
            return self._quiesce(peer)

    def writers(self) -> tuple[Peer, ...]:
        """Every registration that is not proven quiet."""
        with self._lock:
            return tuple(self._sessions)

    def close(self) -> None:
        """Admit nobody any more."""
        with self._lock:
            self._closed = True

    def end_sessions(self) -> None:
        """After `close`, once the receiver's threads have ended."""
        with self._lock:
            for session in self._sessions.values():
                session.end()

    def _check(self, claim: Claim) -> None:
        writer, target = claim.writer, claim.target
        if target != self._me:
            raise WriterDenied(
                Denial.WRONG_TARGET,
                f"this is {self._me.node}, incarnation {self._me.incarnation}, not {target.node}, "
                f"incarnation {target.incarnation}: pages of another incarnation mean nothing here",
            )
        if claim.layout != self._layout:
            raise WriterDenied(
                Denial.LAYOUT,
                f"the page layouts of {writer.node} and {self._me.node} differ: start both with the same "
                "model, dtype and page size",
            )
        if writer.incarnation < self._lowest_admissible.get(writer.node, 0):
            raise WriterDenied(
                Denial.STALE_WRITER,
                f"incarnation {writer.incarnation} of {writer.node} was superseded or cut: restart the node",
            )
        new_node = writer.node not in self._lowest_admissible
        if self._closed or (new_node and len(self._lowest_admissible) >= NODES_MAX):
            raise WriterDenied(Denial.BUSY, f"{self._me.node} takes no more writers")

    def _settle_earlier(self, writer: Peer) -> None:
        if self._quiesce(writer) is not CutResult.PROVEN:
            raise WriterDenied(
                Denial.NOT_QUIET,
                f"an earlier connection of {writer.node}, incarnation {writer.incarnation}, may still write: "
                "destroy it, then connect again",
            )

    def _quiesce(self, peer: Peer) -> CutResult:
        session = self._sessions.get(peer)
        if session is None:
            return CutResult.PROVEN
        result = session.quiesce()
        if result is CutResult.PROVEN:
            del self._sessions[peer]
        return result
