"""Build the router from its settings, and serve HTTP until SIGTERM.

Ready is said when every node that the launcher started has said hello and every prefill node is connected
to every decode node, so that the first request meets a whole deployment. SIGTERM drains: what is new is
refused, what is old is finished within the drain time, then the server stops.
"""

import asyncio
import contextlib
import json
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

import structlog
import uvicorn
from starlette.applications import Starlette

from kvfence import __version__
from kvfence.kv import FenceLevel
from kvfence.protocol import Decisions, RouterCore
from kvfence.protocol import RouterConfig as CoreConfig
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer, Role
from kvfence.serving.api import ApiSettings
from kvfence.serving.app import build_app, uvicorn_config
from kvfence.serving.control import ControlPlane
from kvfence.serving.limits import TenantLimits
from kvfence.serving.metrics import ServingMetrics
from kvfence.serving.node_config import RouterConfig
from kvfence.serving.node_decisions import node_decisions
from kvfence.serving.progress import Progress, Ready, StatusWriter
from kvfence.serving.router_node import RouterNode
from kvfence.serving.tenants import Tenants
from kvfence.serving.tokenizer import TextTokenizer
from kvfence.serving.trace import NodeTrace, open_trace
from kvfence.serving.wire import HelloMessage

WATCH_SECONDS = 0.05
BACKLOG_CONNECTIONS = 1024

log = structlog.get_logger()


def run_router(config: RouterConfig, me: Peer, status: StatusWriter) -> None:
    """Serve until told to stop. Raises OperatorError for an address that cannot be bound."""
    with open_trace(config.trace, me) as trace:
        asyncio.run(_serve(config, me, status, trace))


async def _serve(config: RouterConfig, me: Peer, status: StatusWriter, trace: NodeTrace | None) -> None:
    decisions = node_decisions(FenceLevel(config.fence), config.faults, config.layers_off)
    loop = asyncio.get_running_loop()
    core = _core(config, me, decisions)
    node = RouterNode(core, loop=loop, started_at=time.time())
    if trace is not None:
        facts = {"fence": config.fence, "faults": config.faults, "without": config.layers_off}
        node.observe(trace.watch(core, Role.ROUTER, None, **facts))
    if FenceLevel(config.fence).needs_unsafe_switch:
        node.stats.set("unsafe_fence_off", 1)
    for fault in config.faults:
        node.stats.set("unsafe_faults", 1, fault=fault)
    for layer in config.layers_off:
        node.stats.set("unsafe_without", 1, layer=layer)
    listening = _listen(config.host, config.port)
    plane = ControlPlane(
        me=me,
        role=Role.ROUTER,
        secret=config.secret_path.read_bytes(),
        bind=config.router_control,
        router_address=None,
        deliver=node.deliver,
        hello_ms=config.times.hello_ms,
        lost_ms=config.times.lost_ms,
    )
    node.attach(plane)
    plane.announce(HelloMessage(role=Role.ROUTER, control_address=plane.address))
    plane.start()
    server = _Server(_http(config, node, decisions))
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides when a node ends
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        if await _whole(config, node, status, stop):
            status.send(Ready(incarnation=me.incarnation, url=_url(listening)))
            await _first_of(stop, node.failed)
        if node.failed.done():
            node.failed.result()  # raises what failed: the process ends, and is started again
        await _drain(node, config.times.drain_ms / 1000)
    finally:
        server.should_exit = True
        await serving
        plane.close()


def _core(config: RouterConfig, me: Peer, decisions: Decisions) -> RouterCore:
    limits = CoreConfig(
        context_tokens=config.context_tokens,
        page_tokens=config.page_tokens,
        request_ms=config.times.request_ms,
        queue_ms=config.times.queue_ms,
    )
    return RouterCore(me, limits, decisions)


def _http(config: RouterConfig, node: RouterNode, decisions: Decisions) -> uvicorn.Config:
    app = _app(config, node, decisions)
    return uvicorn_config(app, host=config.host, port=config.port, headers=unsafe_header(config))


def _app(config: RouterConfig, node: RouterNode, decisions: Decisions) -> Starlette:
    metrics = ServingMetrics(node.figures)
    model_config = json.loads((config.model_dir / "config.json").read_text(encoding="utf-8"))
    admin_key = None
    if config.admin_key_file is not None:
        admin_key = config.admin_key_file.read_text(encoding="utf-8").strip()
    return build_app(
        node,
        TextTokenizer.from_folder(config.model_dir),
        ApiSettings(
            model_id=config.model_id,
            body_bytes_max=config.body_bytes_max,
            limits=TenantLimits(config.tenant_requests_max, config.tenant_tokens_max),
            vocab_size=model_vocab_size(model_config),
            admin_only_state=not _is_loopback(config.host),
        ),
        tenants=Tenants(keys_file=config.api_keys, admin_key=admin_key),
        observer=metrics,
        metrics=metrics.render,
        server_info=lambda: {
            "version": __version__,
            "model": config.model_id,
            "context_tokens": config.context_tokens,
            "fence": config.fence,
            "transport": config.transport,
            "unsafe_faults": list(config.faults),
            "unsafe_without": list(config.layers_off),
            **node.server_info(),
        },
        decisions=decisions,
    )


def unsafe_header(config: RouterConfig) -> tuple[tuple[str, str], ...]:
    """Name on every answer what is wrong by the operator's wish."""
    named = ["fence-off"] if FenceLevel(config.fence).needs_unsafe_switch else []
    named += [*config.faults, *(f"without-{layer}" for layer in config.layers_off)]
    return (("x-kvfence-unsafe", ",".join(named)),) if named else ()


def model_vocab_size(model_config: Mapping[str, object]) -> int | None:
    """How many tokens a model has, where its config says so: what it has not, no client may send it."""
    nested = model_config.get("text_config")
    for table in (nested if isinstance(nested, Mapping) else {}, model_config):
        value = table.get("vocab_size")
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


async def _whole(config: RouterConfig, node: RouterNode, status: StatusWriter, stop: asyncio.Event) -> bool:
    """Wait for every node, and for every page connection. False when told to stop before."""
    expected = {*config.prefill_nodes, *config.decode_nodes}
    said = -1
    while not stop.is_set() and not node.failed.done():
        present = expected & set(node.hellos)
        if len(present) != said:
            said = len(present)
            status.send(Progress(step="waiting for nodes", done=said, total=len(expected)))
        if present == expected and _linked(config, node):
            return True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), WATCH_SECONDS)
    return False


async def _first_of(stop: asyncio.Event, failed: asyncio.Future[None]) -> None:
    """Until the router is told to stop, or has failed."""
    failed.add_done_callback(lambda _: stop.set())
    await stop.wait()


def _linked(config: RouterConfig, node: RouterNode) -> bool:
    wanted = len(config.decode_nodes)
    links = [node.hellos[name][1].facts.get("linked_decode_nodes") for name in config.prefill_nodes]
    return all(isinstance(count, int) and count >= wanted for count in links)


async def _drain(node: RouterNode, patience_seconds: float) -> None:
    node.drain()
    try:
        await asyncio.wait_for(node.idle.wait(), patience_seconds)
    except TimeoutError:
        log.warning("drain time is over: requests in flight are ended")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG_CONNECTIONS)
    except OSError as error:
        raise OperatorError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another --port, "
            "or stop what holds it"
        ) from error


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(uvicorn.Server):
    """Leaves signals alone: they are handled here, by draining."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield
