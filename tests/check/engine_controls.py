"""Controls on real processes: `kvfence serve` with a fault, or with none, and `kvfence check` against it.

A fault is tried with the layers off that would stop it, and with sizes at which it has its chance. What the
check said is read from its JSON lines.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.check.controls import HARD, KEYS, Played
from tests.e2e.deployment import Deployment

from kvfence.faults import CATALOGUE, SWITCHES, Harm, Layer
from kvfence.report import Answered, AnyEvent, FindingMade, ScenarioEnded, Verdict
from kvfence.report.jsonl import parse_events

CHECK_SECONDS_MAX = 3_600
PAGES_LAYERS = (Layer.MANIFEST, Layer.SEAL, Layer.GUARD)
SMALL = ("--context", "2048", "--pool-tokens", "6144")
BAND = ("--context", "2048", "--prefill-pool-tokens", "1328", "--decode-pool-tokens", "4096")
SIZES: dict[str, tuple[str, ...]] = {
    "rejected-continues/incident": BAND,
    "rejected-continues/admission-unchecked": BAND,
    "rejected-continues/split-state": BAND,
    "rejected-continues/recompute-outgrows-pool": (
        *("--context", "2048", "--prefill-pool-tokens", "1024", "--decode-pool-tokens", "2048"),
    ),
    "transfer-outlives-pages/free-on-deadline": (*SMALL, "--lease-timeout-s", "1", "--chunk-tokens", "128"),
    "transfer-outlives-pages/free-on-abort": (*SMALL, "--chunk-tokens", "128"),
    "transfer-outlives-pages/closed-before-quiet": (*SMALL, "--chunk-tokens", "128"),
    "stale-reference/late-prefill": (*SMALL, "--chunk-tokens", "128"),
}
HEALTHY: dict[str, tuple[str, ...]] = {
    "1p1d": ("--context", "2048"),
    "2p2d": ("--context", "2048", "--prefill", "2", "--decode", "2"),
    "tiny-pool": SMALL,
    "preempting": ("--context", "2048", "--pool-tokens", "2560"),
    "no-prefix-cache": (*SMALL, "--no-prefix-cache"),
}
# What is exposed and not leaked is a finding for these alone.
EXPOSING = (Harm.REUSE, Harm.STALL, Harm.DOUBLE)


def faults_outside() -> list[str]:
    """The faults of the catalogue that real nodes get to, and of which the outside can know."""
    return [name for name, fault in CATALOGUE.items() if fault.runs_on_engine]


def serve_flags(name: str) -> tuple[str, ...]:
    """How `kvfence serve` is started for a fault: sizes, the fault, and without the layers that stop it."""
    caught_by = CATALOGUE[name].caught_by
    off = [layer.value for layer in SWITCHES if layer in caught_by or layer in PAGES_LAYERS]
    without = [word for layer in off for word in ("--unsafe-without", layer)]
    fault = ("--unsafe-fault", name, "--i-understand-this-leaks-data")
    return (*SIZES.get(name, SMALL), *fault, *without)


def counts_for(name: str) -> frozenset[Verdict]:
    """The verdicts that find a fault."""
    return HARD | {Verdict.EXPOSED} if CATALOGUE[name].harm in EXPOSING else HARD


def check_served(
    flags: tuple[str, ...], *, seed: int, profile: str = "standard", counts: frozenset[Verdict] = HARD
) -> Played:
    """Serve with these flags, check once, and say what was found."""
    home = Path(tempfile.mkdtemp(prefix="kvf-"))
    try:
        with Deployment(home, *flags) as deployment:
            events = _checked(deployment.url, home, seed, profile)
    finally:
        shutil.rmtree(home)
    return read(events, seed, counts)


def _checked(url: str, home: Path, seed: int, profile: str) -> tuple[AnyEvent, ...]:
    lines = home / "events.jsonl"
    keys = [word for name in KEYS for word in ("--key-env", name)]
    command = [
        sys.executable,
        "-m",
        "kvfence",
        "check",
        f"{url}/v1",
        "--profile",
        profile,
        "--seed",
        str(seed),
    ]
    done = subprocess.run(
        [*command, *keys, "--two-tenants", "--own-server", "--jsonl", str(lines)],
        env={**os.environ, **KEYS},
        timeout=CHECK_SECONDS_MAX,
        capture_output=True,
        text=True,
        check=False,
    )
    if not lines.exists():
        raise RuntimeError(f"the check said nothing (exit {done.returncode}): {done.stdout}{done.stderr}")
    return parse_events(lines.read_bytes(), "events").events


def read(events: tuple[AnyEvent, ...], seed: int, counts: frozenset[Verdict]) -> Played:
    """What a run found first, and after how much."""
    requests, codes, ended, found = 0, [], {}, None
    at_requests, at_s = 0, 0.0
    for event in events:
        requests += isinstance(event, Answered)
        if isinstance(event, FindingMade):
            codes.append(event.finding.code)
        if isinstance(event, ScenarioEnded):
            ended[event.scenario] = event.verdict.value
            if found is None and event.verdict in counts:
                found, at_requests, at_s = event, requests, event.at_s
    return Played(
        seed=seed,
        scenario=None if found is None else found.scenario,
        verdict=None if found is None else found.verdict.value,
        codes=tuple(codes),
        requests=requests if found is None else at_requests,
        seconds=round(events[-1].at_s if found is None else at_s, 3),
        ended=ended,
    )


def as_data(played: Played) -> dict:
    """For the file of results."""
    return json.loads(json.dumps({**{name: getattr(played, name) for name in played.__struct_fields__}}))
