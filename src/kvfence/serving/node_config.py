"""What one process of a deployment is told at start: structs, written as JSON into the run directory.

The launcher writes `<node>.json` (mode 0600) and starts `python -m kvfence.serving.node_main <that file>`;
the node reads it once. Units stand in the names. Nothing here is secret: the deployment's secret is in
the file that `secret_path` names.
"""

from pathlib import Path

import msgspec

from kvfence.protocol.errors import OperatorError

NODE_CONFIG_BYTES_MAX = 1 << 20


class NodeTimes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every bound in time, in milliseconds."""

    hello_ms: int = 1_000
    lost_ms: int = 5_000
    request_ms: int = 300_000
    queue_ms: int = 30_000
    lease_ms: int = 300_000
    close_retry_ms: int = 1_000
    growth_ms: int = 10_000
    posting_ms: int = 1_000
    drain_ms: int = 30_000


class _Node(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", forbid_unknown_fields=True):
    """What every process needs.

    `router_control` is where the router's control socket is bound and dialled (`ipc://…` in the run
    directory, or `tcp://…`). `cpus` is the set to run on, None for whatever is inherited; `threads` is
    torch's. `status_fd` is the inherited write end of the launcher's pipe (`serving.progress`).
    `parent_pid` is the launcher: the node asks the kernel to be killed with it, then checks that it is
    still its child. `context_tokens` is what the deployment advertises at most. `trace` is a file to which
    all nodes append their steps (`serving.trace`).
    """

    node: str
    run_dir: Path
    secret_path: Path
    status_fd: int
    parent_pid: int
    router_control: str
    model_dir: Path
    context_tokens: int
    page_tokens: int
    threads: int
    cpus: tuple[int, ...] | None
    fence: str
    transport: str
    times: NodeTimes
    faults: tuple[str, ...] = ()
    layers_off: tuple[str, ...] = ()
    trace: Path | None = None


class RouterConfig(_Node, frozen=True, kw_only=True, tag="router"):
    """The router with its HTTP API. `host` and `port` are what uvicorn binds; port 0 is any free one."""

    host: str
    port: int
    model_id: str
    prefill_nodes: tuple[str, ...]
    decode_nodes: tuple[str, ...]
    api_keys: Path | None
    admin_key_file: Path | None
    body_bytes_max: int
    tenant_requests_max: int
    tenant_tokens_max: int
    quarantine_share_max: float


class _ComputeNode(_Node, frozen=True, kw_only=True):
    """A node with a model and a pool. `data_host` is where a `tcp` transport listens.

    `pool_tokens` None: the node takes `placement.default_pool_tokens`, which needs the model's page size,
    within `pool_bytes_max` (None: no bound is known). It reports what it got in its `Ready`.
    """

    dtype: str
    device: str
    pool_tokens: int | None
    pool_bytes_max: int | None
    batch_size: int
    data_host: str


class PrefillConfig(_ComputeNode, frozen=True, kw_only=True, tag="prefill"):
    """A prefill node."""

    chunk_tokens: int
    transfer_batch_bytes: int
    prefix_cache: bool


class DecodeConfig(_ComputeNode, frozen=True, kw_only=True, tag="decode"):
    """A decode node."""

    quarantine_share_max: float


NodeConfig = RouterConfig | PrefillConfig | DecodeConfig


def encode_node_config(config: NodeConfig) -> bytes:
    """Return JSON, for people too."""
    return msgspec.json.format(msgspec.json.encode(config, enc_hook=_encode), indent=2)


def decode_node_config(data: bytes) -> NodeConfig:
    """Read what `encode_node_config` wrote. Raises OperatorError for anything else."""
    try:
        return msgspec.json.decode(data, type=NodeConfig, dec_hook=_decode)
    except msgspec.DecodeError as error:
        raise OperatorError(
            f"a node was started with settings that it cannot read: {error}; start nodes with kvfence serve, "
            "and all parts of one deployment from the same version"
        ) from error


def read_node_config(path: Path) -> NodeConfig:
    """Read a node's settings from the file that the launcher wrote. Raises OperatorError."""
    if not path.is_file() or path.stat().st_size > NODE_CONFIG_BYTES_MAX:
        raise OperatorError(
            f"a node was started with {path}, which holds no settings; start nodes with kvfence serve"
        )
    return decode_node_config(path.read_bytes())


def _encode(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no place in a node's settings")


def _decode(wanted: type, value: object) -> object:
    if wanted is Path:
        return Path(str(value))
    raise NotImplementedError(f"{wanted.__name__} has no place in a node's settings")
