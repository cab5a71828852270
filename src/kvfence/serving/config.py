"""Settings of a deployment: one frozen dataclass, read from flags and a TOML file, checked at the edge.

Rules it keeps:
- TOML keys are the flags with underscores. A flag beats the file, the file beats the default.
- An unknown key is an error with a suggestion; a bad value is an error that says what would be right.
- What leaks when anything else is wrong (a fence or a layer of it that is off, an unsafe fault) is wanted
  twice, or refused.
- No secret is kept here: files that hold secrets are named by path, and read where they are used.

It reads no environment variable and no machine property: threads and pools are chosen in `placement.py`,
and whether the context fits is known only when the model and the pools are. It imports nothing heavy,
since the command line needs it before it knows whether anything heavy is wanted.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kvfence.kv import FenceLevel
from kvfence.protocol.errors import OperatorError
from kvfence.serving import config_rules as rules

CONFIG_BYTES_MAX = 1 << 20
# The flag is repeated, one name each; the field holds all of them.
FIELD_OF_KEY = {"unsafe_fault": "unsafe_faults"}
KEY_OF_FIELD = {field: key for key, field in FIELD_OF_KEY.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Everything that `kvfence serve` can be told. Pools in usable tokens; None means chosen at start."""

    model: str | None = None
    dtype: str = "bfloat16"
    device: str = "cpu"
    prefill: int = 1
    decode: int = 1
    pool_tokens: int | None = None
    prefill_pool_tokens: int | None = None
    decode_pool_tokens: int | None = None
    context: int | str | None = None
    page_tokens: int = 16
    chunk_tokens: int = 1024
    batch_size: int = 16
    prefix_cache: bool = True
    threads: int | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    api_keys: Path | None = None
    admin_key_file: Path | None = None
    trace: Path | None = None
    fence: str = "sealed"
    transport: str = "shm"
    transfer_batch_bytes: int = 8 << 20
    posting_timeout_s: float = 1.0
    hello_interval_s: float = 1.0
    lost_after_s: float = 5.0
    request_timeout_s: float = 300.0
    queue_timeout_s: float = 30.0
    quarantine_timeout_s: float = 10.0
    quarantine_share_max: float = 0.5
    lease_timeout_s: float = 300.0
    close_retry_s: float = 1.0
    drain_timeout_s: float = 30.0
    start_timeout_s: float = 300.0
    body_bytes_max: int = 4 << 20
    tenant_requests_max: int = 64
    tenant_tokens_max: int | None = None
    unsafe_faults: tuple[str, ...] = ()
    unsafe_without: tuple[str, ...] = ()
    i_understand_this_leaks_data: bool = False

    @property
    def nodes(self) -> int:
        """Compute nodes; the router is none."""
        return self.prefill + self.decode

    @property
    def is_unsafe(self) -> bool:
        """Whether this deployment may leak by its operator's wish."""
        return self.is_fence_off or bool(self.unsafe_faults) or bool(self.unsafe_without)

    @property
    def is_fence_off(self) -> bool:
        """Whether no check runs on pages: for measuring."""
        return FenceLevel(self.fence).needs_unsafe_switch

    def pool_tokens_of(self, role: str) -> int | None:
        """Return the pool that was asked for a role ("prefill" or "decode"), or None: to be chosen."""
        own = self.prefill_pool_tokens if role == "prefill" else self.decode_pool_tokens
        return self.pool_tokens if own is None else own


_POOL = rules.optional(rules.integer(1, rules.TOKENS_MAX))
_PATIENCE = rules.seconds(0.01, 86_400)
RULES: dict[str, rules.Rule] = {
    "model": rules.optional(rules.text),
    "dtype": rules.dtype,
    "device": rules.choice("cpu", "cuda"),
    "prefill": rules.integer(1, rules.NODES_MAX),
    "decode": rules.integer(1, rules.NODES_MAX),
    "pool_tokens": _POOL,
    "prefill_pool_tokens": _POOL,
    "decode_pool_tokens": _POOL,
    "context": rules.context,
    "page_tokens": rules.integer(1, rules.PAGE_TOKENS_MAX),
    "chunk_tokens": rules.integer(1, 1 << 20),
    "batch_size": rules.integer(1, 4096),
    "prefix_cache": rules.boolean,
    "threads": rules.optional(rules.integer(1, 1024)),
    "host": rules.text,
    "port": rules.integer(0, 65_535),
    "api_keys": rules.optional(rules.file_path),
    "admin_key_file": rules.optional(rules.file_path),
    "trace": rules.optional(rules.new_file),
    "fence": rules.choice(*rules.FENCE_LEVELS),
    "transport": rules.choice("shm", "tcp"),
    "transfer_batch_bytes": rules.integer(4096, 1 << 30),
    "posting_timeout_s": _PATIENCE,
    "hello_interval_s": _PATIENCE,
    "lost_after_s": _PATIENCE,
    "request_timeout_s": _PATIENCE,
    "queue_timeout_s": _PATIENCE,
    "quarantine_timeout_s": _PATIENCE,
    "quarantine_share_max": rules.share,
    "lease_timeout_s": _PATIENCE,
    "close_retry_s": _PATIENCE,
    "drain_timeout_s": rules.seconds(0, 86_400),
    "start_timeout_s": _PATIENCE,
    "body_bytes_max": rules.integer(1024, 1 << 30),
    "tenant_requests_max": rules.integer(1, 1 << 20),
    "tenant_tokens_max": rules.optional(rules.integer(1, rules.TOKENS_MAX)),
    "unsafe_faults": rules.names,
    "unsafe_without": rules.names,
    "i_understand_this_leaks_data": rules.boolean,
}
ACKNOWLEDGEMENT = "i_understand_this_leaks_data"
KEYS = tuple(KEY_OF_FIELD.get(field.name, field.name) for field in fields(ServeConfig))


def load_config(
    flags: Mapping[str, Any],
    *,
    config: Path | None = None,
    known_faults: Collection[str] | None = None,
    known_layers: Collection[str] | None = None,
) -> ServeConfig:
    """Build the settings. `flags` holds field names; None means that the flag was not given.

    `known_faults` and `known_layers`, if given, are the only names that `unsafe_faults` and
    `unsafe_without` accept. Raises OperatorError.
    """
    given = {} if config is None else read_config_file(config)
    given.update({name: value for name, value in flags.items() if value is not None and value != ()})
    checked = {name: RULES[name](KEY_OF_FIELD.get(name, name), value) for name, value in given.items()}
    settings = ServeConfig(**checked)
    _check_unsafe(settings, known_faults, known_layers)
    _check_together(settings)
    return settings


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the fields that a TOML file sets, values as they stand there. Raises OperatorError."""
    if not path.is_file():
        raise OperatorError(f"the config file {path} is not there; correct --config or create the file")
    if path.stat().st_size > CONFIG_BYTES_MAX:
        raise OperatorError(
            f"the config file {path} has more than {CONFIG_BYTES_MAX:,} bytes, too many for settings; "
            "check that --config names the right file"
        )
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"the config file {path} is not TOML: {error}; correct that place") from error
    for key in table:
        if key not in KEYS:
            raise OperatorError(
                f"the config file {path} sets {key!r}, which is no setting of kvfence serve: "
                f"{rules.did_you_mean(key, KEYS)}"
            )
    if ACKNOWLEDGEMENT in table:
        raise OperatorError(
            f"the config file {path} sets {ACKNOWLEDGEMENT!r}, which is said anew at every start: "
            "take it out, and give --i-understand-this-leaks-data on the command line"
        )
    return {FIELD_OF_KEY.get(key, key): value for key, value in table.items()}


def _check_together(settings: ServeConfig) -> None:
    if settings.lost_after_s < 2 * settings.hello_interval_s:
        raise OperatorError(
            f"lost_after_s is {settings.lost_after_s:g} and hello_interval_s {settings.hello_interval_s:g}: "
            "one late hello would count as a death; make lost_after_s at least twice hello_interval_s"
        )
    # With faults on, the plan checks it: one of them may be that nobody does.
    if isinstance(settings.context, int) and not (settings.unsafe_faults or settings.unsafe_without):
        for role in ("prefill", "decode"):
            check_context(settings.context, settings.pool_tokens_of(role), role)


def _check_unsafe(
    settings: ServeConfig, known_faults: Collection[str] | None, known_layers: Collection[str] | None
) -> None:
    _check_known("unsafe_fault", "fault", settings.unsafe_faults, known_faults)
    _check_known("unsafe_without", "layer", settings.unsafe_without, known_layers)
    if settings.is_unsafe and not settings.i_understand_this_leaks_data:
        cause = "an unsafe fault" if settings.unsafe_faults else "a layer left out"
        cause = "fence = off" if settings.is_fence_off else cause
        raise OperatorError(
            f"{cause} lets one tenant read another's data, so it is not enough to ask for it once; "
            "leave it out, or add --i-understand-this-leaks-data on a machine without anybody's data"
        )


def _check_known(key: str, kind: str, names: Collection[str], known_names: Collection[str] | None) -> None:
    for name in names:
        if known_names is not None and name not in known_names:
            raise OperatorError(
                f"{key} names {name!r}, which is no {kind} that kvfence knows: "
                f"{rules.did_you_mean(name, tuple(known_names))}"
            )


def check_context(context_tokens: int, pool_tokens: int | None, node: str) -> None:
    """Law 6 at start: raise OperatorError when the context is larger than a node's pool."""
    if pool_tokens is not None and context_tokens > pool_tokens:
        raise OperatorError(
            f"the context of {context_tokens:,} tokens is larger than the {node} pool of {pool_tokens:,} "
            "tokens: prompts between the two could never be held there; raise --pool-tokens to at least "
            f"{context_tokens}, or lower --context to at most {pool_tokens} (--context {rules.FIT} does that)"
        )
