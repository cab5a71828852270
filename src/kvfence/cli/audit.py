"""`kvfence audit`: do the pools of these nodes fit their context, and are they set up as they should be?"""

from pathlib import Path
from typing import Annotated

import typer

from kvfence.report.exit_codes import DEFAULT_FAIL_ON, OnInconclusive
from kvfence.report.finding import Severity

# What audits is imported when the command runs: other commands do not need it.
# ruff: noqa: PLC0415

Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET", help="URLs, start-up logs, saved answers; - is standard input."),
]
DeploymentFile = Annotated[
    Path | None, typer.Option("--deployment", metavar="FILE", help="TOML: nodes, roles, pairs.")
]
Prefills = Annotated[
    list[str] | None, typer.Option("--prefill", metavar="TARGET", help="A prefill node; repeatable.")
]
Decodes = Annotated[
    list[str] | None, typer.Option("--decode", metavar="TARGET", help="A decode node; repeatable.")
]
Routers = Annotated[list[str] | None, typer.Option("--router", metavar="TARGET", help="What clients ask.")]
KeyEnv = Annotated[str | None, typer.Option("--key-env", metavar="NAME", help="Variable with the admin key.")]
CaFile = Annotated[Path | None, typer.Option("--ca-file", metavar="FILE", help="Certificates to trust.")]
Proxy = Annotated[str | None, typer.Option("--proxy", metavar="URL", help="HTTP proxy.")]
TimeoutSeconds = Annotated[float | None, typer.Option("--timeout-s", help="For one answer of a node.")]
FiguresFile = Annotated[
    Path | None, typer.Option("--baseline", metavar="FILE", help="Figures of the last audit: tell changes.")
]
WriteFigures = Annotated[bool, typer.Option("--write-baseline", help="Write the figures into --baseline.")]
AcceptedFile = Annotated[
    Path | None, typer.Option("--accepted", metavar="FILE", help="Accepted findings, TOML.")
]
Lines = Annotated[Path | None, typer.Option("--jsonl", metavar="FILE", help="Keep every event.")]
AsJson = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Report as one document.")]
AsSarif = Annotated[Path | None, typer.Option("--sarif", metavar="FILE", help="For code scanning.")]
AsJunit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="For CI.")]
AsHtml = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="One page.")]
FailOn = Annotated[Severity, typer.Option("--fail-on", help="Exit 1 from this severity on.")]
Inconclusive = Annotated[OnInconclusive, typer.Option("--on-inconclusive", help="Exit 5, or 0 with pass.")]


def audit_command(
    targets: Targets = None,
    *,
    deployment: DeploymentFile = None,
    prefill: Prefills = None,
    decode: Decodes = None,
    router: Routers = None,
    key_env: KeyEnv = None,
    ca_file: CaFile = None,
    proxy: Proxy = None,
    timeout_s: TimeoutSeconds = None,
    baseline: FiguresFile = None,
    write_baseline: WriteFigures = False,
    accepted: AcceptedFile = None,
    jsonl: Lines = None,
    json: AsJson = None,
    sarif: AsSarif = None,
    junit: AsJunit = None,
    html: AsHtml = None,
    fail_on: FailOn = DEFAULT_FAIL_ON,
    on_inconclusive: Inconclusive = OnInconclusive.TELL,
) -> int:
    """Compare the KV pools of running engines with their context, and their settings with known defects."""
    from kvfence.cli.audit_run import Flags, run_audit
    from kvfence.report.formats import Format

    outputs = {Format.JSON: json, Format.SARIF: sarif, Format.JUNIT: junit, Format.HTML: html}
    named = (("prefill", prefill), ("decode", decode), ("router", router), (None, targets))
    return run_audit(
        Flags(
            targets=tuple((role, word) for role, words in named for word in words or ()),
            deployment=deployment,
            key_env=key_env,
            ca_file=ca_file,
            proxy=proxy,
            timeout_s=timeout_s,
            baseline=baseline,
            writes_baseline=write_baseline,
            accepted=accepted,
            jsonl=jsonl,
            outputs={to: path for to, path in outputs.items() if path is not None},
            fail_on=fail_on,
            on_inconclusive=on_inconclusive,
        )
    )
