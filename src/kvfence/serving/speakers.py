"""Who is heard on the control plane: the newest incarnation of each node, and each of its messages once.

Rules: a message for another incarnation of this node, of an older incarnation of its sender, or numbered no
higher than one that was heard, is dropped with the reason; a newer incarnation silences the older ones from
its first message on (law 10). Every sender has proven the deployment's secret before it comes here.

It knows no sockets and no time: whether a node still speaks is the plane's to notice.
"""

from enum import Enum, unique

from kvfence.protocol.words import Peer
from kvfence.serving.wire import Envelope

NODES_MAX = 256  # nodes that are remembered, each by its newest incarnation


@unique
class Drop(Enum):
    """Why a control message was dropped."""

    OWN_NAME = "own_name"
    FOR_ANOTHER_INCARNATION = "for_another_incarnation"
    OLDER_INCARNATION = "older_incarnation"
    SEEN_BEFORE = "seen_before"
    TOO_MANY_NODES = "too_many_nodes"
    UNREADABLE = "unreadable"  # without the secret, of another version, or broken
    SENSELESS = "senseless"  # heard, and nothing that its receiver can be told
    INBOX_FULL = "inbox_full"
    OUTBOX_FULL = "outbox_full"
    SOCKET_FULL = "socket_full"
    UNKNOWN_TARGET = "unknown_target"  # no link to that incarnation exists


class Speakers:
    """The senders of one node's inbox. Not safe for threads: the plane's alone."""

    def __init__(self, me: Peer) -> None:
        self._me = me
        self._heard: dict[str, tuple[int, int]] = {}  # node → newest incarnation, its last number

    def fault_of(self, envelope: Envelope) -> Drop | None:
        """Why the message is dropped; None: it is heard, and remembered as such."""
        sender = envelope.sender
        if sender.node == self._me.node:
            return Drop.OWN_NAME
        if envelope.target is not None and envelope.target != self._me:
            return Drop.FOR_ANOTHER_INCARNATION
        known = self._heard.get(sender.node)
        if known is None and len(self._heard) >= NODES_MAX:
            return Drop.TOO_MANY_NODES
        if known is not None:
            newest, last_number = known
            if sender.incarnation < newest:
                return Drop.OLDER_INCARNATION
            if sender.incarnation == newest and envelope.number <= last_number:
                return Drop.SEEN_BEFORE
        self._heard[sender.node] = (sender.incarnation, envelope.number)
        return None
