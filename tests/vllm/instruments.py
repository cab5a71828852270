"""`kvfence audit` and `kvfence check`, run as commands, and what they said, from their JSON lines.

Each run can be kept: with KVFENCE_VLLM_RECORD naming a file, what it came to goes there, and
`docs/make_engines.py` makes the tables of docs/engines.md of it. No text of a reply is kept, nor any port.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from kvfence.report import Answered, AnyEvent, FindingMade, NodeRead, PairRead, ScenarioEnded, Verdict
from kvfence.report.jsonl import parse_events

SECONDS_MAX = 2_400
HARD = frozenset({Verdict.LEAK, Verdict.UNREAD, Verdict.TRUNCATED, Verdict.HANG})
RECORD = "KVFENCE_VLLM_RECORD"
_ADDRESS = re.compile(r"(?:http://)?127\.0\.0\.1:\d+")


@dataclass(frozen=True)
class Ran:
    """One command and its end."""

    command: str
    exit_code: int
    seconds: float
    output: str
    events: tuple[AnyEvent, ...]
    findings: tuple = field(init=False)

    def __post_init__(self):
        found = tuple(event.finding for event in self.events if isinstance(event, FindingMade))
        object.__setattr__(self, "findings", found)

    def of(self, kind):
        """Events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def codes(self) -> list[str]:
        """Codes of all findings."""
        return sorted({finding.code for finding in self.findings})

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Scenario to verdict."""
        return {ended.scenario: ended.verdict for ended in self.of(ScenarioEnded)}

    @property
    def hard(self) -> dict[str, str]:
        """Scenarios that ended with what a healthy server never gives, and why."""
        return {ended.scenario: ended.why for ended in self.of(ScenarioEnded) if ended.verdict in HARD}


def kvfence(home: Path, *words: str, env=None) -> Ran:
    """Run `kvfence WORDS --jsonl …` and read what it said."""
    lines = home / f"{words[0]}-{time.monotonic_ns()}.jsonl"
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "kvfence", *words, "--jsonl", str(lines)],
        env={**os.environ, "COLUMNS": "150", "TERM": "dumb", **(env or {})},
        timeout=SECONDS_MAX,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    output = done.stdout + done.stderr
    if not lines.exists():
        raise AssertionError(f"kvfence {shlex.join(words)} said nothing (exit {done.returncode}): {output}")
    events = parse_events(lines.read_bytes(), "events").events
    return Ran(shlex.join(("kvfence", *words)), done.returncode, seconds, output, events)


def keep(name: str, ran: Ran, names: dict[str, str], said: dict[str, float]) -> None:
    """Keep what a run came to, where a file for it is named.

    `names` are words for addresses and paths, `said` what the servers themselves said of it.
    """
    print(ran.command, ran.output, sep="\n")
    place = os.environ.get(RECORD)
    if place is None:
        return
    path = Path(place)
    data = json.loads(path.read_text()) if path.exists() else {}
    data[name] = {
        "command": _told(ran.command, names),
        "exit": ran.exit_code,
        "seconds": round(ran.seconds),
        "requests": len(ran.of(Answered)),
        "codes": ran.codes,
        "nodes": [_node(node, names) for node in ran.of(NodeRead)],
        "pairs": [pair.limit_tokens for pair in ran.of(PairRead)],
        "scenarios": {
            ended.scenario: {
                "verdict": ended.verdict.value,
                "why": _told(ended.why, names),
                "upper_95": None if ended.bound is None else ended.bound.upper_95,
                "opportunities": None if ended.bound is None else ended.bound.opportunities,
            }
            for ended in ran.of(ScenarioEnded)
        },
        "said": said,
    }
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def _node(node: NodeRead, names: dict[str, str]) -> dict:
    told = {"name": _told(node.node, names), "engine": node.engine, "version": node.engine_version}
    figures = {name: [figure.value, _told(figure.read_from, names)] for name, figure in node.figures.items()}
    return {**told, "role": node.role, "verdict": node.verdict, "ratio": node.ratio, "figures": figures}


def _told(text: str, names: dict[str, str]) -> str:
    for secret, word in sorted(names.items(), key=lambda pair: -len(pair[0])):
        # Nodes are named by their address without its scheme.
        text = text.replace(secret, word).replace(secret.removeprefix("http://"), word)
    return _ADDRESS.sub("URL", text)
