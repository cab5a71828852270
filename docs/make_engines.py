"""Write docs/engines.md, what audit and check said of real engines, from docs/engines.json.

`make test-vllm` keeps there what each command came to. Without a flag the page is written from that file
alone, and `--check` says whether it is up to date (exit 1 when it is not).
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs" / "engines.md", ROOT / "docs" / "engines.json"

# What the tests keep; what is missing from the data is said on the page.
KEPT_BY_TESTS = (
    "single: audit",
    "single: audit of the log",
    "single: check quick",
    "single: check cross-tenant-reuse",
    "single: check cross-tenant-reuse with salts",
    "single: check id-collision",
    "single: check abort-refill",
    "single: check full-pool",
    "single: check mixed-constraints",
    "single: check churn-steady",
    "pair: audit",
    "pair: audit of the logs",
    "pair: check quick",
    "pair: check stale-handoff",
)
LINE = re.compile(r"^\S*(?:\.log|LOG):\d+$")

HEAD = """\
# Real engines

Written by `docs/make_engines.py` from `docs/engines.json`, which `make test-vllm` fills; do not edit by hand.
The tests that say what must come out stand in `tests/vllm`. `make test-vllm` makes an environment of its own
for vLLM, which takes some GB of disk, and then the better part of an hour.

**What was run:** vLLM {version} for CPUs, in bf16, eager, one thread a server, with the default model, a
context of {context:,} tokens and a pool of {pool:,}, so that pages go from hand to hand; alone, and as a
prefill and a decode node with its NIXL connector (over TCP and shared memory, policy `fail`, the lease as
shipped) behind a toy proxy. Seconds are of one machine with two cores, which had other things to do.

**What was not run:** any GPU, and so no kernel, page size or transport that only GPUs have; SGLang,
TensorRT-LLM, LMDeploy, TGI, llama.cpp and Ollama (their readers are tested on what they print and answer, not
on running servers); vLLM's other connectors; several machines; larger models.

"""


def rows_of_audit(data: dict[str, Any]) -> list[str]:
    """One line a node: what was read, and where."""
    rows = ["| run | node | version | role | context | pool | concurrency | verdict | codes | exit |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, ran in data.items():
        for node in ran["nodes"]:
            figures = {key: value[0] for key, value in node["figures"].items()}
            cells = [name, node["name"], f"{node['engine']} {node['version']}", node["role"] or ""]
            cells += [_number(figures.get(key)) for key in ("context_tokens", "pool_tokens", "concurrency")]
            rows.append(_row([*cells, node["verdict"], " ".join(ran["codes"]), ran["exit"]]))
    return rows


def rows_of_sources(data: dict[str, Any]) -> list[str]:
    """Where figures stood; one line for each figure and source."""
    rows = ["| figure | value | read from | first in |", "| --- | --- | --- | --- |"]
    seen: set[str] = set()
    for name, ran in data.items():
        for node in ran["nodes"]:
            for figure, (value, source) in sorted(node["figures"].items()):
                where = LINE.sub("a line of the log", source)
                if f"{figure} {where}" not in seen:
                    rows.append(_row([f"`{figure}`", value, where, name]))
                seen.add(f"{figure} {where}")
    return rows


def rows_of_check(data: dict[str, Any]) -> list[str]:
    """One line a scenario."""
    rows = ["| run | scenario | verdict | what it saw | opportunities | rate at most, at 95 % |"]
    rows.append("| --- | --- | --- | --- | --- | --- |")
    for name, ran in data.items():
        for scenario, ended in ran["scenarios"].items():
            bound = ended["upper_95"]
            most = "" if bound is None else f"{bound:.0%}"
            why = ended["why"].replace("|", "\\|").replace("\n", " ")
            cells = [name, scenario, f"*{ended['verdict']}*", why, ended["opportunities"] or "", most]
            rows.append(_row(cells))
    return rows


def lines_of_servers(data: dict[str, Any]) -> list[str]:
    """What the servers themselves said of a run."""
    return [
        f"- {name}: {what}: {value:g}"
        for name, ran in data.items()
        for what, value in ran.get("said", {}).items()
    ]


def rows_of_commands(data: dict[str, Any]) -> list[str]:
    """One line a command."""
    rows = ["| run | command | exit | requests | seconds |", "| --- | --- | --- | --- | --- |"]
    for name, ran in data.items():
        rows.append(_row([name, f"`{ran['command']}`", ran["exit"], ran["requests"], ran["seconds"]]))
    return rows


def page(data: dict[str, Any]) -> str:
    """The whole document."""
    audits = {name: ran for name, ran in data.items() if ran["nodes"]}
    checks = {name: ran for name, ran in data.items() if ran["scenarios"]}
    first = next(iter(audits.values()))["nodes"][0]
    head = HEAD.format(
        version=first["version"],
        context=first["figures"]["context_tokens"][0],
        pool=first["figures"]["pool_tokens"][0],
    )
    missing = [name for name in KEPT_BY_TESTS if name not in data]
    if missing:
        head += f"Of what the tests hold, these have not come to their end yet: {'; '.join(missing)}.\n"
    parts = [head, "## Commands\n", *rows_of_commands(data), "\n## Audit\n", *rows_of_audit(audits)]
    parts += ["\n## Check\n", *rows_of_check(checks)]
    told = lines_of_servers(data)
    parts += ["\nWhat the servers said of it themselves:\n", *told] if told else []
    parts += ["\n## Where the figures stood\n", *rows_of_sources(audits)]
    return "\n".join(parts) + "\n"


def _number(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _row(cells: list[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> int:
    """Write the page, or say whether it is what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    kept = json.loads(DATA.read_text(encoding="utf-8"))
    told = page({name: kept[name] for name in KEPT_BY_TESTS if name in kept})
    if parser.parse_args().check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != told)
    PAGE.write_text(told, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
