"""`kvfence serve`: one deployment on one machine, from its settings to its last process.

    sweep the dead ─▶ run directory ─▶ plan ─▶ start ─▶ all ready ─▶ law 6 ─▶ banner
    ─▶ serve (restart the dead, kill whom decode must see dead) ─▶ Ctrl-C ─▶ drain ─▶ nothing is left

Rules it keeps:
- Whatever happens, it ends by killing and reaping every process that it started and by removing the run
  directory. If it is killed itself, the kernel ends its nodes, and the next start sweeps the directory.
- While it starts, a node that ends ends the start, with the node's own words. Once it serves, a node
  that ends is started again.
- The first Ctrl-C or SIGTERM drains: the router ends its requests, then the nodes stop. The second stops
  at once.

It imports no torch. The model was resolved before (`model_source.py`).
"""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from rich.console import Console

from kvfence import __version__
from kvfence.protocol.errors import InternalError, OperatorError, invariant, unreachable
from kvfence.serving.banner import BannerFacts, StartView, show_banner, step_words
from kvfence.serving.config import ServeConfig, check_context
from kvfence.serving.node_config import RouterConfig
from kvfence.serving.node_log import NodeLog
from kvfence.serving.node_process import NodeCommand, NodeProcess, NodeSpec, node_command
from kvfence.serving.plan import ROUTER, Machine, ModelFacts, Plan, plan_nodes
from kvfence.serving.progress import Kill, Progress, Ready
from kvfence.serving.rundir import RunDir, runtime_base, sweep
from kvfence.serving.signals import SignalCounter
from kvfence.serving.supervisor import (
    NodeEnded,
    NodeRestarted,
    NodeSaid,
    StuckProcessesError,
    Supervisor,
    SupervisorEvent,
)
from kvfence.serving.trace import deployment_trace

LOOK_S = 0.5  # how often the nodes' logs are looked into
STOP_GRACE_S = 5.0  # from SIGTERM to SIGKILL for a node that has nothing to finish
ROUTER_GRACE_S = 2.0  # beyond its own drain timeout
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the launcher takes from outside, so that a test can give it something else."""

    environment: Mapping[str, str]
    output: Console
    errors: Console
    machine: Machine
    command: NodeCommand = node_command


def serve(
    config: ServeConfig, model: ModelFacts, around: Surroundings, *, lifts_capacity: bool = False
) -> int:
    """Serve until a signal comes, and return the exit code: 0 after a drain, 130 when it was cut short.

    Raises OperatorError for what the operator must mend, InternalError when a node fails to start.
    """
    view = StartView(around.errors)
    base = runtime_base(around.environment)
    for swept in sweep(base):
        view.line(f"swept what was left of deployment {swept.deployment} ({len(swept.killed)} processes)")
        if swept.stuck:
            view.warn(
                f"processes {list(swept.stuck)} of deployment {swept.deployment} do not end when killed"
            )
    with (
        contextlib.closing(view),
        _run_dir(base) as run_dir,
        deployment_trace(config.trace, run_dir.deployment),
        SignalCounter() as signals,
    ):
        plan = plan_nodes(config, model, run_dir, around.machine, lifts_capacity=lifts_capacity)
        return Launcher(config, model, plan, run_dir, around, view, signals).run()


@contextlib.contextmanager
def _run_dir(base: Path) -> Iterator[RunDir]:
    """Hold a run directory while its processes live; one that is still in use is left to the sweep."""
    run_dir = RunDir.create(base)
    try:
        yield run_dir
    except StuckProcessesError:
        run_dir.leave()
        raise
    except BaseException:
        run_dir.remove()
        raise
    run_dir.remove()


class Launcher:
    """One deployment while it lives."""

    def __init__(
        self,
        config: ServeConfig,
        model: ModelFacts,
        plan: Plan,
        run_dir: RunDir,
        around: Surroundings,
        view: StartView,
        signals: SignalCounter,
    ) -> None:
        """Start nothing yet."""
        self._config, self._model, self._plan, self._run_dir = config, model, plan, run_dir
        self._around, self._view, self._signals = around, view, signals
        self._logs = {name: NodeLog(name, run_dir.log_path(name)) for name in plan.names}
        self._supervisor = Supervisor(self._start_node)
        self._supervisor.watch(signals.fileno())

    def run(self) -> int:
        """Start, serve and stop; see `serve`."""
        try:
            if not self._start():
                return INTERRUPTED
            self._serve()
            return self._drain()
        finally:
            self._supervisor.close()

    def _start_node(self, spec: NodeSpec) -> NodeProcess:
        return NodeProcess.start(spec, self._run_dir, self._around.environment, self._around.command)

    # ------------------------------------------------------------ start
    def _start(self) -> bool:
        """Start every node and wait for all of them. False: a signal came first."""
        if self._plan.warning is not None:
            self._view.warn(self._plan.warning)
        for spec in self._plan.nodes:
            self._supervisor.start(spec)
            self._view.step(spec.name, "starting")
        until = time.monotonic() + self._config.start_timeout_s
        while not self._supervisor.all_ready(self._plan.names):
            if self._signals.seen:
                return False
            self._step(self._while_starting)
            if time.monotonic() > until:
                raise OperatorError(self._too_slow())
        self._compare_capacity()
        self._view.close()
        show_banner(self._around.output, self._config, self._banner_facts())
        return True

    def _while_starting(self, event: SupervisorEvent) -> None:
        if isinstance(event, NodeEnded):
            raise self._start_failure(event)
        if isinstance(event, NodeSaid) and isinstance(event.status, Progress | Ready):
            self._view.step(event.node, step_words(event.status))

    def _start_failure(self, ended: NodeEnded) -> Exception:
        """Say why the start is over: the node's own words where it had any, else the end of its log."""
        self._view.close()
        if ended.failed is not None and ended.failed.exit_code == 2:
            return OperatorError(f"{ended.node} cannot start: {ended.failed.message}")
        words = "" if ended.failed is None else f": {ended.failed.message}"
        return InternalError(
            f"{ended.node} {_end_words(ended.exit_status)} while it started{words}; the end of its log:\n"
            f"{self._logs[ended.node].tail()}"
        )

    def _too_slow(self) -> str:
        waiting = [
            name for name in self._plan.names if name in self._supervisor.running and not self._ready(name)
        ]
        return (
            f"{', '.join(waiting)} did not become ready within {self._config.start_timeout_s:g} s; look at "
            "what else keeps the machine busy, or raise --start-timeout-s"
        )

    def _ready(self, name: str) -> Ready | None:
        process = self._supervisor.process(name)
        return None if process is None else process.ready

    def _compare_capacity(self) -> None:
        """Law 6, on what the running nodes say they have."""
        for name in self._plan.names:
            ready = self._ready(name)
            if ready is not None and not self._plan.fits:
                check_context(self._plan.context_tokens, ready.pool_tokens, name)

    def _banner_facts(self) -> BannerFacts:
        nodes = []
        for spec in self._plan.nodes:
            ready = self._ready(spec.name)
            if ready is None:
                unreachable("the banner comes when every node is ready")
            nodes.append((spec.config, ready))
        urls = [ready.url for _, ready in nodes if ready.url is not None]
        invariant(urls, "the router says its URL when it is ready")
        return BannerFacts(
            version=__version__,
            model_id=self._model.model_id,
            has_chat_template=self._model.chat_template is not None,
            url=urls[0],
            context_tokens=self._plan.context_tokens,
            nodes=tuple(nodes),
            run_dir=str(self._run_dir.path),
        )

    # ------------------------------------------------------------ serve
    def _serve(self) -> None:
        """Until the first signal."""
        self._keep_the_port()
        self._supervisor.restarts = True
        while not self._signals.seen:
            self._step(self._while_serving)
        self._supervisor.restarts = False
        self._signals.clear()

    def _keep_the_port(self) -> None:
        """A router that is started again listens where its clients know it, a free port included."""
        process, ready = self._supervisor.process(ROUTER), self._ready(ROUTER)
        if process is None or ready is None or ready.url is None:
            return
        port = urlsplit(ready.url).port
        if isinstance(process.spec.config, RouterConfig) and port is not None:
            config = msgspec.structs.replace(process.spec.config, port=port)
            self._supervisor.update(replace(process.spec, config=config))

    def _while_serving(self, event: SupervisorEvent) -> None:
        match event:
            case NodeEnded() if event.restart_s is not None:
                words = "" if event.failed is None else f" ({event.failed.message})"
                self._view.warn(
                    f"{event.node} {_end_words(event.exit_status)}{words}; it is started again in "
                    f"{event.restart_s:g} s"
                )
                if not event.was_asked_to_die and event.failed is None and event.exit_status > 0:
                    self._view.line(self._logs[event.node].tail())
            case NodeRestarted():
                self._view.line(f"{event.node} is started again")
            case NodeSaid(status=Ready() as ready):
                self._back_again(event.node, ready)

    def _back_again(self, node: str, ready: Ready) -> None:
        self._view.line(f"{node} is back")
        if ready.pool_tokens is not None and ready.pool_tokens < self._plan.context_tokens:
            self._view.warn(
                f"{node} came back with a pool of {ready.pool_tokens:,} tokens, less than the context of "
                f"{self._plan.context_tokens:,}: the largest request is smaller now; free memory and restart"
            )

    # ------------------------------------------------------------ stop
    def _drain(self) -> int:
        """The router first, then the nodes. A second signal stops all of it at once."""
        self._view.line("draining: requests in flight are finished, new ones refused (Ctrl-C stops at once)")
        compute = [name for name in self._plan.names if name != ROUTER]
        patience_s = self._config.drain_timeout_s + ROUTER_GRACE_S
        drained = self._stop([ROUTER], patience_s) and self._stop(compute, STOP_GRACE_S)
        self._supervisor.close()
        self._view.line("stopped")
        return 0 if drained else INTERRUPTED

    def _stop(self, nodes: list[str], patience_s: float) -> bool:
        """Ask nodes to end and wait. False: a second signal came. Those that do not end are killed."""
        self._supervisor.signal(nodes, signal.SIGTERM)
        until = time.monotonic() + patience_s
        while set(nodes) & set(self._supervisor.running):
            if len(self._signals.seen) > 1:
                return False
            if time.monotonic() > until:
                left = sorted(set(nodes) & set(self._supervisor.running))
                self._view.warn(f"{', '.join(left)} did not end within {patience_s:g} s and is killed")
                self._supervisor.signal(left, signal.SIGKILL)
                until += STOP_GRACE_S
            self._step(lambda _event: None)
        return True

    # ------------------------------------------------------------ every phase
    def _step(self, react: Callable[[SupervisorEvent], None]) -> None:
        for event in self._supervisor.poll(LOOK_S):
            if isinstance(event, NodeSaid) and isinstance(event.status, Kill):
                self._obey(event.node, event.status)
            react(event)
        for log in self._logs.values():
            for line in log.warnings():
                self._view.line(line, style="yellow")

    def _obey(self, asker: str, request: Kill) -> None:
        """Kill on request. One that is not running any more has been reaped, which is what was wanted."""
        if self._supervisor.kill(request):
            self._view.warn(f"{request.node} is killed: {asker} waits for proof that it writes no more")


def _end_words(exit_status: int) -> str:
    if exit_status < 0:
        return f"was ended by {signal.Signals(-exit_status).name}"
    return f"ended with exit code {exit_status}"
