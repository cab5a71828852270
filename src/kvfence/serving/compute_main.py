"""Build a prefill or a decode node from its settings, and run it.

The order matters: the model first (its probe gives the page layout), then the pool, then whoever may
reach the pool, then the control plane; ready is said when all of it stands. What is reported of the pool
is read back from the buffer.
"""

import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass

from kvfence import __version__
from kvfence.engine import DecodeExecutor, PagedModel, PrefillExecutor, load_model, resolve_model, set_threads
from kvfence.engine.pool_views import pool_views
from kvfence.kv import FenceLevel, KvIdentity, PageLayout, Pool, PrefixIndex
from kvfence.protocol import (
    DecodeConfig,
    DecodeCore,
    NoPrefix,
    PageLedger,
    PrefillConfig,
    PrefillCore,
    PrefixSource,
)
from kvfence.protocol.errors import unreachable
from kvfence.protocol.words import Peer
from kvfence.serving import node_config as settings
from kvfence.serving.control import ControlPlane
from kvfence.serving.cutter import Cutter
from kvfence.serving.decode_node import DecodeNode, DecodeParts
from kvfence.serving.decode_pages import DecodePages
from kvfence.serving.node_decisions import node_decisions
from kvfence.serving.node_loop import Facts, NodeLoop
from kvfence.serving.page_links import PageLinks
from kvfence.serving.placement import default_pool_tokens
from kvfence.serving.prefill_node import PrefillNode, PrefillParts
from kvfence.serving.prefill_pages import PrefillPages
from kvfence.serving.progress import Kill, Progress, Ready, StatusWriter
from kvfence.serving.trace import NodeTrace, open_trace
from kvfence.transport import TcpTransport, Transport, make_transport

NODE_SECRET_BYTES = 32

ComputeConfig = settings.PrefillConfig | settings.DecodeConfig


@dataclass(frozen=True, slots=True)
class _Ground:
    """What both roles stand on."""

    me: Peer
    model: PagedModel
    layout: PageLayout
    secret: bytes
    status: StatusWriter
    level: FenceLevel


def run_compute(config: ComputeConfig, me: Peer, status: StatusWriter) -> None:
    """Build the node, say that it is ready, and run it until SIGTERM."""
    with open_trace(config.trace, me) as trace:
        _run(config, me, status, trace)


def _run(config: ComputeConfig, me: Peer, status: StatusWriter, trace: NodeTrace | None) -> None:
    status.send(Progress(step="loading the model"))
    set_threads(config.threads)
    model = load_model(resolve_model(config.model_dir), dtype=config.dtype, device=config.device)
    status.send(Progress(step="allocating the pool"))
    ground = _Ground(
        me=me,
        model=model,
        layout=model.page_layout(config.page_tokens),
        secret=config.secret_path.read_bytes(),
        status=status,
        level=FenceLevel(config.fence),
    )
    if isinstance(config, settings.PrefillConfig):
        node, pool, close = _build_prefill(config, ground)
    else:
        node, pool, close = _build_decode(config, ground)
    plane = ControlPlane(
        me=me,
        role=node.ROLE,
        secret=ground.secret,
        bind=_control_bind(config),
        router_address=config.router_control,
        deliver=node.deliver,
        hello_ms=config.times.hello_ms,
        lost_ms=config.times.lost_ms,
    )
    node.attach(plane)
    if trace is not None:
        node.keep_trace(trace, fence=config.fence, faults=config.faults, without=config.layers_off)
    plane.announce(node.hello())
    plane.start()
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides when a node ends
    status.send(
        Ready(
            incarnation=me.incarnation,
            pool_tokens=_usable_tokens(config, pool),
            pool_bytes=pool.buffer.nbytes,
            context_tokens=config.context_tokens,
        )
    )
    try:
        node.run()
    finally:
        plane.close()
        close()


def _control_bind(config: ComputeConfig) -> str:
    if config.router_control.startswith("ipc://"):
        return f"ipc://{config.run_dir}/{config.node}.control"
    return f"tcp://{config.data_host}:*"


def _transport(config: ComputeConfig) -> Transport:
    if config.transport == TcpTransport.name:
        return TcpTransport(host=config.data_host)
    return make_transport(config.transport)


def _spare_pages(config: ComputeConfig) -> int:
    """Decode keeps one page a row of its largest batch for copies and tails."""
    return config.batch_size if isinstance(config, settings.DecodeConfig) else 0


def _usable_tokens(config: ComputeConfig, pool: Pool) -> int:
    """Read back from the buffer: what may be promised to requests."""
    return (pool.pages - _spare_pages(config)) * config.page_tokens


def _allocate(config: ComputeConfig, layout: PageLayout) -> tuple[Pool, PageLedger]:
    spare = _spare_pages(config)
    tokens = config.pool_tokens
    if tokens is None:
        tokens = default_pool_tokens(
            config.context_tokens, config.page_tokens, layout.page_bytes, config.pool_bytes_max
        )
    pool = Pool.create(layout, layout.pages_for(tokens) + spare)
    return pool, PageLedger(pool.pages - spare, spare_pages=spare)


def _facts(config: ComputeConfig, ground: _Ground, pool: Pool) -> Facts:
    return {
        "version": __version__,
        "context_tokens": config.context_tokens,
        "largest_request_tokens": min(config.context_tokens, _usable_tokens(config, pool)),
        "page_tokens": config.page_tokens,
        "page_bytes": ground.layout.page_bytes,
        "pool_bytes": pool.buffer.nbytes,
        "fence": ground.level.value,
        "dtype": config.dtype,
        "device": config.device,
        "transport": config.transport,
        "threads": config.threads,
        "cpus": None if config.cpus is None else ",".join(map(str, config.cpus)),
        "weights_revision": ground.model.revision,
        "unsafe_faults": ",".join(config.faults) or None,
        "unsafe_without": ",".join(config.layers_off) or None,
    }


def _build_decode(
    config: settings.DecodeConfig, ground: _Ground
) -> tuple[NodeLoop, Pool, Callable[[], None]]:
    pool, ledger = _allocate(config, ground.layout)
    decisions = node_decisions(ground.level, config.faults, config.layers_off)
    core = DecodeCore(
        ground.me,
        DecodeConfig(
            page_tokens=config.page_tokens,
            lease_ms=config.times.lease_ms,
            close_retry_ms=config.times.close_retry_ms,
            growth_ms=config.times.growth_ms,
            quarantine_percent_max=round(config.quarantine_share_max * 100),
        ),
        decisions,
        ledger,
    )
    pages = DecodePages(
        pool,
        ledger,
        level=ground.level,
        incarnation=ground.me.incarnation,
        node_secret=secrets.token_bytes(NODE_SECRET_BYTES),
        decisions=decisions,
    )
    executor = DecodeExecutor(
        ground.model,
        pool_views(pool, decisions),
        page_tokens=config.page_tokens,
        max_batch=config.batch_size,
        decisions=decisions,
    )
    waker = _Waker()
    receiver = _transport(config).listen(
        pool=pool, me=ground.me, secret=ground.secret, run_dir=config.run_dir, wake=waker.wake
    )
    cutter = Cutter(
        receiver,
        kill=lambda peer: ground.status.send(Kill(node=peer.node, incarnation=peer.incarnation)),
    )
    node = DecodeNode(
        ground.me,
        DecodeParts(
            core=core,
            ledger=ledger,
            pages=pages,
            executor=executor,
            cutter=cutter,
            facts=_facts(config, ground, pool),
            pool_tokens=_usable_tokens(config, pool),
            pages_address=receiver.address,
        ),
    )
    waker.node = node
    return node, pool, receiver.close


def _build_prefill(
    config: settings.PrefillConfig, ground: _Ground
) -> tuple[NodeLoop, Pool, Callable[[], None]]:
    pool, ledger = _allocate(config, ground.layout)
    decisions = node_decisions(ground.level, config.faults, config.layers_off)
    prefix: PrefixSource = NoPrefix()
    if config.prefix_cache:
        if ground.model.revision is None:
            unreachable("a model that was loaded from a folder has a revision")
        identity = KvIdentity(
            model=ground.model.module.config.model_type,
            revision=ground.model.revision,
            dtype=config.dtype,
            page_tokens=config.page_tokens,
        )
        prefix = PrefixIndex.ruled_by(decisions, identity, ledger)
    core = PrefillCore(
        ground.me,
        PrefillConfig(
            page_bytes=ground.layout.page_bytes,
            page_tokens=config.page_tokens,
            batch_bytes=config.transfer_batch_bytes,
            batch_ms=config.times.posting_ms,
        ),
        decisions,
        ledger,
        prefix,
    )
    waker = _Waker()
    links = PageLinks(
        transport=_transport(config),
        me=ground.me,
        secret=ground.secret,
        pool=pool,
        wake=waker.wake,
    )
    node = PrefillNode(
        ground.me,
        PrefillParts(
            core=core,
            ledger=ledger,
            pages=PrefillPages(pool, ledger, level=ground.level, decisions=decisions),
            executor=PrefillExecutor(
                ground.model, pool_views(pool, decisions), chunk_tokens=config.chunk_tokens
            ),
            links=links,
            facts=_facts(config, ground, pool),
            pool_tokens=_usable_tokens(config, pool),
        ),
    )
    waker.node = node
    return node, pool, links.close


class _Waker:
    """The transport's signal, which may come before there is a loop to wake: then it polls anyway."""

    def __init__(self) -> None:
        self.node: NodeLoop | None = None

    def wake(self) -> None:
        """Called from the transport's threads."""
        if self.node is not None:
            self.node.wake()
