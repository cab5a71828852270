"""`kvfence serve`: flags in, a deployment out.

Each flag is a field of `ServeConfig` and is declared once, in `FLAGS`; its type and default come from the
dataclass, so that none can be forgotten or differ. Flags are checked with the config file's values, by the
same rules.
"""

import dataclasses
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from kvfence.serving import FIT, KEY_OF_FIELD, ServeConfig, load_config

MODEL, NODES, HTTP, FENCE, WATCH, TIMES = (
    "Model",
    "Nodes and pools",
    "HTTP",
    "Fence and transfer",
    "Looking into it",
    "Times and limits",
)
FLAGS: dict[str, tuple[str, type, str]] = {
    "model": (MODEL, str, "HF folder or GGUF file; without it SmolLM2-135M-Instruct."),
    "dtype": (MODEL, str, "bfloat16, float16 or float32 (bf16, fp16, fp32)."),
    "device": (MODEL, str, "cpu or cuda (untested until it has run on a GPU)."),
    "context": (MODEL, str, f'Longest prompt + answer in tokens, or "{FIT}": as long as the pools hold.'),
    "prefill": (NODES, int, "Prefill nodes."),
    "decode": (NODES, int, "Decode nodes."),
    "pool_tokens": (
        NODES,
        int,
        "Usable tokens of each pool; by default twice the context, if memory allows.",
    ),
    "prefill_pool_tokens": (NODES, int, "The same, for prefill nodes."),
    "decode_pool_tokens": (NODES, int, "The same, for decode nodes."),
    "page_tokens": (NODES, int, "Tokens in a page."),
    "chunk_tokens": (NODES, int, "Most prompt tokens of a prefill step."),
    "batch_size": (NODES, int, "Most rows of a decode step."),
    "prefix_cache": (NODES, bool, "Compute a prefix once for all prompts of a tenant."),
    "threads": (NODES, int, "Threads of each node; by default cores by nodes."),
    "host": (HTTP, str, "Address to listen on."),
    "port": (HTTP, int, "Port to listen on; 0 takes a free one."),
    "api_keys": (HTTP, Path, "TOML file of the tenants and the hashes of their keys."),
    "admin_key_file": (HTTP, Path, "File with the key for /metrics and /server_info off this machine."),
    "body_bytes_max": (HTTP, int, "Longest request body."),
    "tenant_requests_max": (HTTP, int, "Requests in flight of a tenant."),
    "tenant_tokens_max": (HTTP, int, "Tokens in flight of a tenant; by default four contexts."),
    "fence": (FENCE, str, "off, contract, sealed or paranoid."),
    "transport": (FENCE, str, "shm or tcp."),
    "transfer_batch_bytes": (FENCE, int, "Most bytes of a transfer batch."),
    "unsafe_faults": (FENCE, list[str], "Switch a known defect on, by name; may be repeated."),
    "unsafe_without": (FENCE, list[str], "Leave a layer of the fence out, by name; may be repeated."),
    "i_understand_this_leaks_data": (
        FENCE,
        bool,
        "Needed with --fence off, --unsafe-fault and --unsafe-without.",
    ),
    "trace": (WATCH, Path, "File to which the nodes write each step as a JSON line, without content."),
    "posting_timeout_s": (TIMES, float, "Posting of a transfer batch."),
    "hello_interval_s": (TIMES, float, "Between two hellos of a node."),
    "lost_after_s": (TIMES, float, "Silence after which a node counts as lost."),
    "request_timeout_s": (TIMES, float, "A request as a whole."),
    "queue_timeout_s": (TIMES, float, "Waiting for room."),
    "quarantine_timeout_s": (TIMES, float, "Waiting for quarantined pages."),
    "quarantine_share_max": (TIMES, float, "Quarantined share of a pool at which admission stops."),
    "lease_timeout_s": (TIMES, float, "A writer that has not closed its lease."),
    "close_retry_s": (TIMES, float, "Between two requests to close a lease."),
    "drain_timeout_s": (TIMES, float, "Requests in flight when the deployment stops."),
    "start_timeout_s": (TIMES, float, "The start of all nodes."),
}


def serve_command(config: Path | None = None, **flags: Any) -> int:
    """Serve a model: a router, prefill and decode nodes behind an OpenAI-compatible API."""
    given = {**flags, **{name: tuple(flags.get(name) or ()) for name in ("unsafe_faults", "unsafe_without")}}
    settings = load_config(given, config=config)
    if settings.unsafe_faults or settings.unsafe_without:
        settings = _unsafe(given, config)
    return _run(settings)


def _unsafe(flags: dict[str, Any], config: Path | None) -> ServeConfig:
    """Check the names, and size pools as the faults want. Not imported unless somebody asks for one."""
    from kvfence.faults import CATALOGUE, SWITCH_NAMES, sizes_prefill_only  # noqa: PLC0415

    settings = load_config(flags, config=config, known_faults=tuple(CATALOGUE), known_layers=SWITCH_NAMES)
    if settings.pool_tokens is not None and sizes_prefill_only(settings.unsafe_faults):
        prefill_tokens = settings.pool_tokens_of("prefill")
        return dataclasses.replace(settings, pool_tokens=None, prefill_pool_tokens=prefill_tokens)
    return settings


def _run(settings: ServeConfig) -> int:
    # Heavy, and loaded when it is named: `kvfence --help` needs none of it.
    from kvfence.kv import available_memory_bytes  # noqa: PLC0415
    from kvfence.serving import (  # noqa: PLC0415
        Machine,
        StartView,
        Surroundings,
        find_model,
        serve,
        usable_cpus,
    )

    lifts_capacity = False
    if settings.unsafe_faults or settings.unsafe_without:
        from kvfence.faults import layer_named, lifts_capacity_check  # noqa: PLC0415

        layers_off = [layer_named(name) for name in settings.unsafe_without]
        lifts_capacity = lifts_capacity_check(settings.unsafe_faults, layers_off)
    errors = Console(stderr=True, highlight=False)
    model = find_model(settings.model, StartView(errors))
    around = Surroundings(
        environment=os.environ,
        output=Console(highlight=False),
        errors=errors,
        machine=Machine(usable_cpus(), available_memory_bytes()),
    )
    return serve(settings, model, around, lifts_capacity=lifts_capacity)


def _option(name: str, default: Any) -> inspect.Parameter:
    panel, kind, words = FLAGS[name]
    flag = f"--{KEY_OF_FIELD.get(name, name).replace('_', '-')}"
    if default is True:
        flag = f"{flag}/--no-{name.replace('_', '-')}"
    help_words = words if default in (None, (), True, False) else f"{words} (default: {default})"
    option = typer.Option(flag, help=help_words, rich_help_panel=panel, show_default=False)
    # None means "not given", so that the config file is heard.
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _signature(defaults: Mapping[str, Any]) -> inspect.Signature:
    config = inspect.Parameter(
        "config",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None, typer.Option("--config", help="TOML file; its keys are the flags with underscores.")
        ],
    )
    return inspect.Signature([*(_option(name, defaults[name]) for name in FLAGS), config])


_SIGNATURE = _signature({field.name: field.default for field in dataclasses.fields(ServeConfig)})
serve_command.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
serve_command.__annotations__ = {name: p.annotation for name, p in _SIGNATURE.parameters.items()}
