"""`shm`: one-sided writes into the decode node's shared pool, on one machine.

The receiver listens on a UNIX socket in the run directory (mode 0700). A writer that is admitted gets two
file descriptors: the pool's memory, which it maps, and a lock, which it holds until after it has unmapped.
From then on it writes pages with plain stores, and the receiver's processor takes no part.

**Order before `Closed`.** The thread stores the payload, then the trailer, then reports the completion; the
node says `Closed` after that, through system calls of both processes, which order the stores before the
message on every processor that Linux runs on. A reader that looks earlier may see a torn page: that is what
the contract and the seal are for.

**A cut** is proven when the kernel has closed every copy of the lock's open file, which happens after the
memory is gone: a process leaves its address space before its files, at exit, at `kill -9`, and at exec. A
child of the writer cannot inherit the mapping (MADV_DONTFORK) but does inherit the lock, so a forked child
holds the cut up until it ends: the right answer, since it could map the memory again. A stopped writer is
not a dead one, and its cut stays PENDING. A cut also closes the connection: a healthy writer then unmaps at
once, and the proof comes without anybody being killed. UNKNOWN is answered after `close`, and where the
kernel does not answer.

It trusts a writer that has proven the secret not to unlock on purpose, and to stay within the pages that it
was given: it is a fence against accidents and bugs, not against a malicious prefill node.
"""

import socket
from pathlib import Path

from kvfence.kv.pool import Pool
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.transport.admission import Claim
from kvfence.transport.base import PagePause, TransportError, Wake
from kvfence.transport.handshake import HANDSHAKE_SECONDS, check_secret, introduce
from kvfence.transport.shm_receiver import ShmReceiver
from kvfence.transport.shm_socket import listen_in
from kvfence.transport.shm_writer import ShmLink, receive_registration
from kvfence.transport.writer import QueuedWriter

SCHEME = "shm:"


class ShmTransport:
    """See the module. `pause` is a test's hook in mid-page."""

    name = ShmReceiver.transport

    def __init__(self, *, pause: PagePause | None = None) -> None:
        self._pause = pause

    def listen(self, *, pool: Pool, me: Peer, secret: bytes, run_dir: Path, wake: Wake) -> ShmReceiver:
        """Accept writers on a socket in `run_dir`; stale sockets of this node are removed first."""
        check_secret(secret)
        sock, path = listen_in(run_dir, me)
        return ShmReceiver(sock, path, address=SCHEME + str(path), pool=pool, me=me, secret=secret, wake=wake)

    def connect(
        self, *, address: str, me: Peer, target: Peer, secret: bytes, source_pool: Pool, wake: Wake
    ) -> QueuedWriter:
        """Register with the receiver at `address` and map its pool."""
        check_secret(secret)
        if not address.startswith(SCHEME):
            raise OperatorError(
                f"{address!r} is not an address of the transport shm: give both nodes the same --transport"
            )
        claim = Claim(writer=me, target=target, layout=source_pool.layout.fingerprint())
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(HANDSHAKE_SECONDS)
            sock.connect(address.removeprefix(SCHEME))
            admitted = introduce(sock, secret=secret, transport=self.name, claim=claim)
            mapping = receive_registration(sock, source_pool.layout, admitted.pages)
        except OSError as error:
            sock.close()
            raise TransportError(f"{target.node} cannot be reached at {address}: {error}") from error
        except BaseException:
            sock.close()
            raise
        link = ShmLink(sock, mapping, source_pool, self._pause)
        return QueuedWriter(target, link, wake)
