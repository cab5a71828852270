"""The process of one node: `python -m kvfence.serving.node_main SETTINGS-FILE`, started by the launcher.

It ties its life to the launcher's, pins itself, draws its incarnation, builds the node of its role and
runs it. Exit codes: 0 after a stop that was asked for, 2 when the operator must mend something, 1 else.
"""

import ctypes
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import structlog
from structlog.typing import EventDict, Processor

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.serving.node_config import NodeConfig, RouterConfig, read_node_config
from kvfence.serving.progress import Failed, Started, StatusWriter

PR_SET_PDEATHSIG = 1
INCARNATION_RANDOM_BITS = 20

log = structlog.get_logger()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one node until it is told to stop; returns the exit code."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    config = read_node_config(Path(path))
    die_with(config.parent_pid)
    set_up_log(config.node)
    status = StatusWriter(config.status_fd)
    end_with_threads(status)
    if config.cpus is not None:
        os.sched_setaffinity(0, config.cpus)
    me = Peer(config.node, draw_incarnation())
    status.send(Started(incarnation=me.incarnation))
    try:
        run(config, me, status)
    except OperatorError as error:
        status.send(Failed(message=str(error), exit_code=2))
        log.error("node ends", why=str(error))  # noqa: TRY400 -- the operator needs no traceback
        return 2
    except Exception as error:
        status.send(Failed(message=f"{type(error).__name__}: {error}", exit_code=1))
        log.exception("node ends")
        return 1
    return 0


def run(config: NodeConfig, me: Peer, status: StatusWriter) -> None:
    """Build and run the node of the configured role."""
    if isinstance(config, RouterConfig):
        from kvfence.serving.router_main import run_router  # noqa: PLC0415 -- the router needs no torch

        run_router(config, me, status)
    else:
        from kvfence.serving.compute_main import run_compute  # noqa: PLC0415 -- imports torch

        run_compute(config, me, status)


def draw_incarnation() -> int:
    """Milliseconds since 1970, then random bits: unique, and a later start has a greater number."""
    return (time.time_ns() // 1_000_000 << INCARNATION_RANDOM_BITS) | secrets.randbits(
        INCARNATION_RANDOM_BITS
    )


def die_with(parent_pid: int) -> None:
    """Be killed when the launcher dies, however it dies; end at once if it is dead already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OperatorError(
            f"the kernel does not tie this node to its launcher: {os.strerror(ctypes.get_errno())}"
        )
    if os.getppid() != parent_pid:
        raise OperatorError("the launcher of this node is gone: start the deployment again")


def end_with_threads(status: StatusWriter) -> None:
    """Let an exception that escapes a thread end the process, as one that escapes the main thread does.

    A node whose control plane has ended would hear nobody, and nobody would start it again.
    """

    def end(dead: threading.ExceptHookArgs) -> None:
        name = "a thread" if dead.thread is None else dead.thread.name
        log.error("node ends by a thread", thread=name, exc_info=dead.exc_value)
        status.send(Failed(message=f"{name}: {dead.exc_type.__name__}: {dead.exc_value}", exit_code=1))
        os._exit(1)

    threading.excepthook = end


def set_up_log(node: str) -> None:
    """Lines for people on standard error, which the launcher keeps in the run directory.

    What the transports and others' packages log (by the standard library, from warnings on) has the same
    form, so that the launcher finds its level and shows it.
    """

    def name_node(_logger: object, _method: str, event: EventDict) -> EventDict:
        event["node"] = node
        return event

    facts: list[Processor] = [
        name_node,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render = structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "node", "event"])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=facts,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    structlog.configure(
        processors=[*facts, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


if __name__ == "__main__":
    sys.exit(main())
