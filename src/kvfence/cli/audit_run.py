"""What `kvfence audit` does with its flags: targets, one audit of them, its reports and its baseline.

Rules it keeps:
- Everything that can be wrong with flags and files is said before the first request.
- Keys come from environment variables by name, and go nowhere but to the address that they are for.
- The exit code is judged from the events, after accepted findings were marked as such.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kvfence.audit import (
    Access,
    Around,
    Baseline,
    Deployment,
    NodeSpec,
    audit,
    read_baseline,
    read_deployment,
    spec_of,
    write_baseline,
)
from kvfence.cli.consoles import output_console
from kvfence.cli.recorder import Recorder
from kvfence.protocol.errors import OperatorError
from kvfence.report import RunEnded, Severity
from kvfence.report.atomic import check_places
from kvfence.report.exit_codes import OnInconclusive, ending_of
from kvfence.report.formats import Format

TIMEOUT_S_MAX = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags of the command, as they were given; targets with the role that their flag declares."""

    targets: tuple[tuple[str | None, str], ...]
    deployment: Path | None
    key_env: str | None
    ca_file: Path | None
    proxy: str | None
    timeout_s: float | None
    baseline: Path | None
    writes_baseline: bool
    accepted: Path | None
    jsonl: Path | None
    outputs: Mapping[Format, Path]
    fail_on: Severity
    on_inconclusive: OnInconclusive


def run_audit(flags: Flags) -> int:
    """Audit what the flags name; return the exit code."""
    deployment = deployment_of(flags)
    check_places(
        (*flags.outputs.values(), *((flags.baseline,) if flags.writes_baseline and flags.baseline else ()))
    )
    around = Around(os.environ, sys.stdin.buffer)
    before = _figures_of(flags)
    with Recorder(console=output_console(), jsonl=flags.jsonl, baseline=flags.accepted) as recorder:
        audited = asyncio.run(
            audit(
                deployment,
                around,
                run=secrets.token_hex(6),
                started=datetime.now(UTC).isoformat(timespec="seconds"),
                baseline=before,
            )
        )
        for event in audited.events:
            recorder.take(event)
        ending = ending_of(recorder.events, flags.fail_on, flags.on_inconclusive)
        recorder.take(RunEnded(at_s=recorder.last_s, exit_code=int(ending.code), why=ending.why))
    if flags.writes_baseline and flags.baseline is not None:
        write_baseline(flags.baseline, audited.nodes, before)
    recorder.report(flags.outputs, on_inconclusive=flags.on_inconclusive, fail_on=flags.fail_on)
    return int(ending.code)


def deployment_of(flags: Flags) -> Deployment:
    """Return everything that is audited: the file's nodes, then those of the command line."""
    named = [replace(spec_of(word), role=role) for role, word in flags.targets]
    if flags.deployment is None:
        whole = Deployment(_told_apart(named))
    else:
        declared = read_deployment(flags.deployment)
        whole = replace(declared, nodes=_told_apart([*declared.nodes, *named]))
    if not whole.nodes:
        raise OperatorError(
            "there is nothing to audit: name URLs, start-up logs or saved answers, - for standard input, or "
            "a deployment with --deployment FILE"
        )
    if sum(node.reads_stdin for node in whole.nodes) > 1:
        raise OperatorError("standard input can be read once: name - once")
    if flags.writes_baseline and flags.baseline is None:
        raise OperatorError("--write-baseline needs to know where: add --baseline FILE")
    return replace(whole, access=_access_of(flags, whole.access))


def _access_of(flags: Flags, declared: Access) -> Access:
    """The command line has the last word."""
    if flags.timeout_s is not None and not 0 < flags.timeout_s <= TIMEOUT_S_MAX:
        raise OperatorError(f"--timeout-s is {flags.timeout_s:g}: use seconds up to {TIMEOUT_S_MAX:g}")
    return Access(
        key_env=flags.key_env or declared.key_env,
        ca_file=flags.ca_file or declared.ca_file,
        proxy=flags.proxy or declared.proxy,
        timeout_s=flags.timeout_s or declared.timeout_s,
    )


def _told_apart(nodes: list[NodeSpec]) -> tuple[NodeSpec, ...]:
    """Names are unique: what is named alike is numbered."""
    seen: dict[str, int] = {}
    unique = []
    for node in nodes:
        seen[node.name] = count = seen.get(node.name, 0) + 1
        unique.append(node if count == 1 else replace(node, name=f"{node.name} #{count}"))
    return tuple(unique)


def _figures_of(flags: Flags) -> Baseline | None:
    """The figures to compare with; a baseline that is only now written has none."""
    if flags.baseline is None or (flags.writes_baseline and not flags.baseline.exists()):
        return None
    return read_baseline(flags.baseline)
