"""From the operator's settings to the processes of a deployment: who is started, with what.

The plan is a pure function of the settings, the model's facts, the machine's facts and the run directory,
so that a test can read what would be started. Capacity (law 6) is checked twice: here, for pools that the
operator named, and by the launcher on what the running nodes report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kvfence.protocol.errors import OperatorError
from kvfence.serving import config_rules as rules
from kvfence.serving.config import ServeConfig, check_context
from kvfence.serving.limits import CONTEXTS_IN_FLIGHT
from kvfence.serving.node_config import DecodeConfig, NodeTimes, PrefillConfig, RouterConfig
from kvfence.serving.node_process import NodeSpec
from kvfence.serving.placement import NodePlacement, place, pool_bytes_limit, thread_environment
from kvfence.serving.rundir import RunDir

ROUTER = "router"
# Names under which the models' configs keep the longest context that they were made for.
CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")


class ModelFacts(Protocol):
    """What the plan needs of a model; `kvfence.engine.loading.ModelFolder` has it."""

    @property
    def path(self) -> Path:
        """The folder in HF layout."""
        ...

    @property
    def model_id(self) -> str:
        """The name that clients use."""
        ...

    @property
    def config(self) -> Mapping[str, object]:
        """Its `config.json`."""
        ...

    @property
    def chat_template(self) -> str | None:
        """How it wants a conversation written; None: it completes text only."""
        ...


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine offers: processors, and memory that can be taken (None: it does not say)."""

    cpus: tuple[int, ...]
    available_bytes: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start. `context_tokens` is what was asked for; with `fits` it may be lowered to the pools."""

    nodes: tuple[NodeSpec, ...]
    context_tokens: int
    fits: bool
    warning: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Every node's name, the router's first."""
        return tuple(spec.name for spec in self.nodes)


def model_context_tokens(model_config: Mapping[str, object]) -> int | None:
    """Return the longest context that a model was made for, if its config says one."""
    nested = model_config.get("text_config")
    for table in (nested if isinstance(nested, Mapping) else {}, model_config):
        for name in CONTEXT_NAMES:
            value = table.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def context_of(config: ServeConfig, model: ModelFacts) -> int:
    """Return the context to serve. Raises OperatorError when nobody knows one, or the model has less."""
    made_for = model_context_tokens(model.config)
    if isinstance(config.context, int):
        if made_for is not None and config.context > made_for:
            raise OperatorError(
                f"the context of {config.context:,} tokens is longer than the {made_for:,} tokens that "
                f"{model.model_id} was made for; lower --context to at most {made_for}"
            )
        return config.context
    if made_for is None:
        raise OperatorError(
            f"the config of {model.model_id} does not say how long a context it was made for; give --context"
        )
    return made_for


def plan_nodes(
    config: ServeConfig, model: ModelFacts, run_dir: RunDir, machine: Machine, *, lifts_capacity: bool = False
) -> Plan:
    """Plan a deployment. `lifts_capacity`: an unsafe fault wants the check of law 6 left out.

    Raises OperatorError when a named pool is smaller than the context and nobody asked to lower it.
    """
    context_tokens = context_of(config, model)
    fits = config.context == rules.FIT or lifts_capacity
    names = [(role, f"{role}-{i}") for role in ("prefill", "decode") for i in range(getattr(config, role))]
    if not fits:
        for role, name in names:
            check_context(context_tokens, config.pool_tokens_of(role), name)
    placement = place(machine.cpus, len(names), config.threads)
    common = _common(config, model, run_dir, context_tokens)
    specs = [_router(config, model, common, [name for _, name in names])]
    for (role, name), placed in zip(names, placement.nodes, strict=True):
        specs.append(
            _compute(config, role, name, {**common, **_compute_fields(config, role, placed, machine)}, placed)
        )
    return Plan(tuple(specs), context_tokens, fits, placement.warning)


def _common(config: ServeConfig, model: ModelFacts, run_dir: RunDir, context_tokens: int) -> dict[str, Any]:
    return {
        "run_dir": run_dir.path,
        "secret_path": run_dir.secret_path,
        # Both are set anew at each start of the process.
        "status_fd": 0,
        "parent_pid": 0,
        "router_control": run_dir.router_control,
        "model_dir": model.path,
        "context_tokens": context_tokens,
        "page_tokens": config.page_tokens,
        "fence": config.fence,
        "transport": config.transport,
        "times": _times(config),
        "faults": config.unsafe_faults,
        "layers_off": config.unsafe_without,
        "trace": config.trace,
    }


def _times(config: ServeConfig) -> NodeTimes:
    def milliseconds(seconds: float) -> int:
        return max(1, round(seconds * 1000))

    return NodeTimes(
        hello_ms=milliseconds(config.hello_interval_s),
        lost_ms=milliseconds(config.lost_after_s),
        request_ms=milliseconds(config.request_timeout_s),
        queue_ms=milliseconds(config.queue_timeout_s),
        lease_ms=milliseconds(config.lease_timeout_s),
        close_retry_ms=milliseconds(config.close_retry_s),
        growth_ms=milliseconds(config.quarantine_timeout_s),
        posting_ms=milliseconds(config.posting_timeout_s),
        drain_ms=milliseconds(config.drain_timeout_s),
    )


def _router(config: ServeConfig, model: ModelFacts, common: dict[str, Any], names: Sequence[str]) -> NodeSpec:
    router = RouterConfig(
        **common,
        node=ROUTER,
        threads=1,
        cpus=None,
        host=config.host,
        port=config.port,
        model_id=model.model_id,
        prefill_nodes=tuple(name for name in names if name.startswith("prefill")),
        decode_nodes=tuple(name for name in names if name.startswith("decode")),
        api_keys=config.api_keys,
        admin_key_file=config.admin_key_file,
        body_bytes_max=config.body_bytes_max,
        tenant_requests_max=config.tenant_requests_max,
        tenant_tokens_max=config.tenant_tokens_max or CONTEXTS_IN_FLIGHT * common["context_tokens"],
        quarantine_share_max=config.quarantine_share_max,
    )
    return NodeSpec(router, thread_environment(1))


def _compute_fields(
    config: ServeConfig, role: str, placed: NodePlacement, machine: Machine
) -> dict[str, Any]:
    available = machine.available_bytes
    return {
        "threads": placed.threads,
        "cpus": placed.cpus,
        "dtype": config.dtype,
        "device": config.device,
        "pool_tokens": config.pool_tokens_of(role),
        "pool_bytes_max": None if available is None else pool_bytes_limit(available, config.nodes),
        "batch_size": config.batch_size,
        "data_host": "127.0.0.1",
    }


def _compute(
    config: ServeConfig, role: str, name: str, fields: dict[str, Any], placed: NodePlacement
) -> NodeSpec:
    if role == "prefill":
        prefill = PrefillConfig(
            **fields,
            node=name,
            chunk_tokens=config.chunk_tokens,
            transfer_batch_bytes=config.transfer_batch_bytes,
            prefix_cache=config.prefix_cache,
        )
        return NodeSpec(prefill, placed.environment)
    decode = DecodeConfig(**fields, node=name, quarantine_share_max=config.quarantine_share_max)
    return NodeSpec(decode, placed.environment)
