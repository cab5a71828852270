"""What a node is joined to in a test of it alone: a control plane that remembers, and a model that counts.

The pools, ledgers, cores and executors of these tests are the real ones.
"""

from tests.engine.counting_model import CountingModel
from tests.kv.pools import LAYOUT, PAGE_TOKENS

from kvfence.engine.decode_executor import DecodeExecutor
from kvfence.engine.pool_views import pool_views
from kvfence.engine.prefill_executor import PrefillExecutor
from kvfence.engine.sampling import SamplingParams
from kvfence.kv import FenceLevel, Pool
from kvfence.protocol.words import AttemptId, Peer, Role
from kvfence.serving.control import LostPeer, Received
from kvfence.serving.node_loop import NodeLoop
from kvfence.serving.speakers import Drop
from kvfence.serving.wire import Body, HelloMessage

ROUTER, PREFILL, DECODE = Peer("router", 3), Peer("prefill-0", 5), Peer("decode-0", 7)
NODE_SECRET = b"n" * 32
GREEDY = SamplingParams(seed=1, temperature=0.0)


class FakePlane:
    """Remembers what was sent and announced."""

    address = "ipc://nowhere"

    def __init__(self) -> None:
        self.sent: list[tuple[Peer, Body]] = []
        self.announced: list[HelloMessage] = []
        self.senseless = 0

    def send(self, target: Peer, body: Body) -> None:
        self.sent.append((target, body))

    def announce(self, hello: HelloMessage, *, now: bool = False) -> None:
        self.announced.append(hello)

    def note_senseless(self) -> None:
        self.senseless += 1

    def drops(self) -> dict[Drop, int]:
        return {**dict.fromkeys(Drop, 0), Drop.SENSELESS: self.senseless}

    def take(self, *kinds: type) -> list[Body]:
        """Take the bodies that were sent, of these kinds if any are named; the others stay."""
        taken = [body for _, body in self.sent if not kinds or isinstance(body, kinds)]
        self.sent = [(peer, body) for peer, body in self.sent if kinds and not isinstance(body, kinds)]
        return taken


def attempt_of(request: int, number: int = 1) -> AttemptId:
    return AttemptId(ROUTER.incarnation, request, number)


def hello_from(peer: Peer, role: Role, **facts) -> Received:
    return Received(peer, HelloMessage(role=role, control_address="ipc://there", **facts))


def decode_executor(model: CountingModel, pool: Pool, max_batch: int = 4) -> DecodeExecutor:
    return DecodeExecutor(model, pool_views(pool), page_tokens=PAGE_TOKENS, max_batch=max_batch)


def prefill_executor(model: CountingModel, pool: Pool, chunk_tokens: int = 1024) -> PrefillExecutor:
    return PrefillExecutor(model, pool_views(pool), chunk_tokens=chunk_tokens)


def turn(node: NodeLoop, *heard: Received | LostPeer) -> None:
    """Let the node hear this and go once around its loop."""
    for inbound in heard:
        assert node.deliver(inbound)
    node.stop()
    node._stopping = False
    node.run()


def figure(node: NodeLoop, key: str) -> float:
    return node.hello().stats[key]


__all__ = [
    "DECODE",
    "GREEDY",
    "LAYOUT",
    "NODE_SECRET",
    "PAGE_TOKENS",
    "PREFILL",
    "ROUTER",
    "CountingModel",
    "FakePlane",
    "FenceLevel",
    "attempt_of",
    "decode_executor",
    "figure",
    "hello_from",
    "prefill_executor",
    "turn",
]
