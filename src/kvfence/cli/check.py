"""`kvfence check`: does this server give one request's content to another? From outside, by its API alone."""

from pathlib import Path
from typing import Annotated

import typer

from kvfence.report.exit_codes import DEFAULT_FAIL_ON, OnInconclusive
from kvfence.report.finding import Severity

# What checks is imported when the command runs: other commands do not need it.
# ruff: noqa: PLC0415

URL = Annotated[str | None, typer.Argument(metavar="URL", help="Base URL, with or without /v1.")]
ProfileName = Annotated[str, typer.Option("--profile", metavar="P", help="quick, standard, deep or soak.")]
Hours = Annotated[float | None, typer.Option("--hours", metavar="H", help="How long a soak takes.")]
KeyEnv = Annotated[
    list[str] | None,
    typer.Option("--key-env", metavar="NAME", help="Variable with a key; twice for two tenants."),
]
TwoTenants = Annotated[bool, typer.Option("--two-tenants", help="The two keys are two tenants.")]
Targets = Annotated[Path | None, typer.Option("--targets", metavar="FILE", help="TOML profile of targets.")]
Model = Annotated[str | None, typer.Option("--model", metavar="M", help="The model to check.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="CLASS", help="heavy, may-stop-server, may-harm-others. All, on loopback."
    ),
]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="SCENARIO", help="This scenario; repeatable.")
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Probe, show plan and costs, and stop.")]
BudgetWords = Annotated[
    list[str] | None,
    typer.Option("--budget", metavar="K=V", help="requests, tokens, bytes, seconds or money."),
]
PriceWords = Annotated[
    str | None, typer.Option("--price", metavar="P/C", help="Money for a million tokens, as 0.15/0.60.")
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, help="Draws everything; without, a new one.")
]
ReplayId = Annotated[str | None, typer.Option("--replay", metavar="ID", help="What a finding shows.")]
ResumeFrom = Annotated[
    Path | None, typer.Option("--resume", metavar="FILE", help="Go on with the run in these JSON lines.")
]
OwnServer = Annotated[bool, typer.Option("--own-server", help="Idle and yours: exact tests are allowed.")]
RequestTimeout = Annotated[
    float | None,
    typer.Option("--request-timeout", metavar="SECONDS", min=1, help="How long one may take: 60."),
]
Lines = Annotated[Path | None, typer.Option("--jsonl", metavar="FILE", help="Keep every event.")]
AsJson = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Report as one document.")]
AsSarif = Annotated[Path | None, typer.Option("--sarif", metavar="FILE", help="For code scanning.")]
AsJunit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="For CI.")]
AsHtml = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="One page, with plots.")]
Evidence = Annotated[str, typer.Option("--evidence", metavar="E", help="markers, or full: texts, encrypted.")]
EvidenceTo = Annotated[
    str | None,
    typer.Option("--evidence-to", metavar="AGE", help="The age recipient of full evidence."),
]
EvidenceDays = Annotated[
    int, typer.Option("--evidence-days", metavar="N", min=1, help="How long it may be kept.")
]
Accepting = Annotated[
    Path | None, typer.Option("--baseline", metavar="FILE", help="Accepted findings, TOML.")
]
FailOn = Annotated[
    Severity, typer.Option("--fail-on", metavar="S", help="Exit 1 from this severity on (critical, high, …).")
]
Inconclusive = Annotated[
    OnInconclusive, typer.Option("--on-inconclusive", metavar="W", help="tell or fail: exit 5; pass: exit 0.")
]


def check_command(
    url: URL = None,
    *,
    profile: ProfileName = "quick",
    hours: Hours = None,
    key_env: KeyEnv = None,
    two_tenants: TwoTenants = False,
    targets: Targets = None,
    model: Model = None,
    allow: Allow = None,
    only: Only = None,
    plan: PlanOnly = False,
    budget: BudgetWords = None,
    price: PriceWords = None,
    seed: Seed = None,
    replay: ReplayId = None,
    resume: ResumeFrom = None,
    own_server: OwnServer = False,
    request_timeout: RequestTimeout = None,
    jsonl: Lines = None,
    json: AsJson = None,
    sarif: AsSarif = None,
    junit: AsJunit = None,
    html: AsHtml = None,
    evidence: Evidence = "markers",
    evidence_to: EvidenceTo = None,
    evidence_days: EvidenceDays = 30,
    baseline: Accepting = None,
    fail_on: FailOn = DEFAULT_FAIL_ON,
    on_inconclusive: Inconclusive = OnInconclusive.TELL,
) -> int:
    """Find out from outside whether a server gives one request's content to another."""
    from kvfence.cli.check_run import Flags, run_check
    from kvfence.report.formats import Format

    outputs = {Format.JSON: json, Format.SARIF: sarif, Format.JUNIT: junit, Format.HTML: html}
    return run_check(
        Flags(
            url=url,
            profile=profile,
            hours=hours,
            key_names=tuple(key_env or ()),
            has_two_tenants=two_tenants,
            targets=targets,
            model=model,
            allowed=tuple(allow or ()),
            only=tuple(only or ()),
            is_plan_only=plan,
            budget=budget or [],
            price=price,
            seed=seed,
            replay=replay,
            resume=resume,
            is_own_server=own_server,
            request_timeout_s=request_timeout,
            jsonl=jsonl,
            outputs={to: path for to, path in outputs.items() if path is not None},
            evidence=evidence,
            evidence_to=evidence_to,
            evidence_days=evidence_days,
            baseline=baseline,
            fail_on=fail_on,
            on_inconclusive=on_inconclusive,
        )
    )
