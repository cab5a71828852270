"""A whole deployment as an operator starts it: time to the first token, idle processors, TTFT and TPOT.

- Start: from the call of `kvfence serve` to the first token of the first answer, the model already
  converted. Several starts; the least counts.
- Idle: CPU seconds of every process of the deployment while nothing is asked of it, as a share of one core.
- Serving: requests of equal length, one at a time and sixteen at once, streamed; every prompt is another,
  so that no prefix is reused. TTFT is from sending to the first token, TPOT from the first token to the
  last, by the tokens that `usage` counts. The client shares the machine's cores with the nodes.

When the deployment cannot start, or refuses what is asked, the result has `skipped` with the reason
instead of figures. Nothing here fails on a slow machine.

Run it: python -m benchmarks.serving [--quick] [FLAG OF kvfence serve ...]
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from benchmarks.deployment import Deployment, NotServingError
from benchmarks.timing import Spread

START_TARGET_SECONDS = 10.0
IDLE_TARGET_PERCENT = 2.0
SETTLE_SECONDS = 2.0
PROMPT_TOKENS = 128
ANSWER_TOKENS = 48
CONCURRENCIES = (1, 16)
FIRST_TOKEN_ID = 1000  # ordinary words of every vocabulary that is worth serving
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class Answer:
    """One streamed answer as its client saw it."""

    ttft_ms: float
    tpot_ms: float
    tokens: int


def run(*, quick: bool, flags: Sequence[str] = ()) -> dict[str, Any]:
    """Measure a deployment started with `flags`. `quick` starts once and asks little."""
    starts: list[dict[str, float]] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(0 if quick else 2):
                with Deployment(Path(folder) / str(number), flags) as deployment:
                    starts.append(_first_token(deployment))
            with Deployment(Path(folder) / "last", flags) as deployment:
                starts.append(_first_token(deployment))
                idle = _idle(deployment, 3.0 if quick else 10.0)
                loads = [_load(deployment, count, quick=quick) for count in CONCURRENCIES]
    except NotServingError as why:
        return {"name": "serving", "skipped": str(why)}
    return {
        "name": "serving",
        "flags": list(flags),
        "prompt_tokens": PROMPT_TOKENS,
        "answer_tokens": ANSWER_TOKENS,
        "start": {
            "target_seconds": START_TARGET_SECONDS,
            **{name: asdict(Spread.of([one[name] for one in starts])) for name in starts[0]},
        },
        "idle": {"target_percent": IDLE_TARGET_PERCENT, **idle},
        "loads": loads,
    }


def _first_token(deployment: Deployment) -> dict[str, float]:
    deployment.wait_ready()
    ready = time.monotonic()
    spent = deployment.cpu_seconds()
    (answer,) = asyncio.run(_ask_all(deployment, [_prompt(0)], 1))
    return {
        "url_seconds": ready - deployment.started,
        "first_token_seconds": ready - deployment.started + answer.ttft_ms / 1e3,
        # What it would take at least where every process has a core to itself.
        "longest_process_cpu_seconds": max(spent.values()),
        "all_processes_cpu_seconds": sum(spent.values()),
    }


def _idle(deployment: Deployment, seconds: float) -> dict[str, Any]:
    """Share of one core that each process takes while nothing is asked of it."""
    time.sleep(SETTLE_SECONDS)
    before, begun = deployment.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begun
    after = deployment.cpu_seconds()
    shares = {name: round(100 * (after[name] - before.get(name, 0.0)) / took, 2) for name in after}
    return {"seconds": round(took, 1), "percent": round(sum(shares.values()), 2), "by_process": shares}


def _load(deployment: Deployment, concurrency: int, *, quick: bool) -> dict[str, Any]:
    """Rounds of `concurrency` requests at once, after one round that is not counted."""
    rounds = (1 if quick else 2) * (4 if concurrency == 1 else 1)
    answers: list[Answer] = []
    throughputs: list[float] = []
    for number in range(rounds + 1):
        prompts = [
            _prompt(1 + concurrency * 100 + number * concurrency + index) for index in range(concurrency)
        ]
        begun = time.monotonic()
        found = asyncio.run(_ask_all(deployment, prompts, ANSWER_TOKENS))
        took = time.monotonic() - begun
        if number:
            answers += found
            throughputs.append(sum(answer.tokens for answer in found) / took)
    return {
        "concurrency": concurrency,
        "ttft_ms": asdict(Spread.of([answer.ttft_ms for answer in answers])),
        "tpot_ms": asdict(Spread.of([answer.tpot_ms for answer in answers])),
        "tokens_per_second": asdict(Spread.of(throughputs)),
    }


def _prompt(number: int) -> list[int]:
    """Token ids that begin differently for each number, so that no page of another prompt fits."""
    return [FIRST_TOKEN_ID + (number * 131 + place * 7) % 5000 for place in range(PROMPT_TOKENS)]


async def _ask_all(deployment: Deployment, prompts: list[list[int]], tokens: int) -> list[Answer]:
    limits = httpx.Limits(max_connections=len(prompts))
    async with httpx.AsyncClient(base_url=deployment.url, timeout=TIMEOUT_SECONDS, limits=limits) as client:
        model = await _model(client)
        return list(await asyncio.gather(*(_ask(client, model, prompt, tokens) for prompt in prompts)))


async def _model(client: httpx.AsyncClient) -> str:
    reply = await client.get("/v1/models")
    _check(reply, reply.text)
    return str(reply.json()["data"][0]["id"])


async def _ask(client: httpx.AsyncClient, model: str, prompt: list[int], tokens: int) -> Answer:
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    begun = time.perf_counter()
    first = last = begun
    made: int | None = None
    async with client.stream("POST", "/v1/completions", json=body) as reply:
        if reply.status_code != httpx.codes.OK:
            _check(reply, (await reply.aread()).decode())
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line.removeprefix("data: "))
            if "error" in event:
                raise NotServingError(f"a stream ended with an error: {event['error']}")
            if event.get("choices"):
                last = time.perf_counter()
                first = last if first == begun else first
            made = (event.get("usage") or {}).get("completion_tokens", made)
    if made != tokens:
        raise NotServingError(f"{tokens} tokens were asked for, and {made} were made")
    return Answer((first - begun) * 1e3, (last - first) * 1e3 / max(1, tokens - 1), tokens)


def _check(reply: httpx.Response, text: str) -> None:
    if reply.status_code != httpx.codes.OK:
        raise NotServingError(f"{reply.request.url.path} answered {reply.status_code}: {text[:500]}")


def main() -> None:
    """Parse the command line, measure, print JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one start, little load")
    arguments, flags = parser.parse_known_args()
    print(json.dumps(run(quick=arguments.quick, flags=flags), indent=2))


if __name__ == "__main__":
    main()
