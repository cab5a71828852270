"""What the fence costs a real model: `sealed` against `off`, for a prompt and for a decode step.

Two answers, since either alone can deceive:
- Shares: CPU time of the fence's own calls, metered inside the work (caches as cold as the model left
  them), over that of the work. `sealed` is everything that those calls do; `over off` leaves out what they
  do at level `off` too (zeroing, copying the tail, the ownership check). The target is 1 % of the latter.
- End to end: both levels in turn in one process, in alternating order: the least of wall and CPU time, and
  the median of the rounds' ratios. A second rig at level `off` is the control: what it seems to cost is
  what this way of measuring cannot tell from nothing.

The rows' prompts differ in length by one token each, so that at batch 16 one row grows in every step.
A decode step's share of what a prompt costs its decode node once (stamp, verify, adopt) is taken for
answers of ANSWER_TOKENS. Nothing here fails on a slow machine.

Run it: python -m benchmarks.fence_end_to_end [--quick]
"""

import argparse
import functools
import itertools
import json
import statistics
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.fence_rig import (
    HANDOVER_PARTS,
    PAGE_TOKENS,
    STEP_PARTS,
    WRITER_PARTS,
    FenceRig,
)
from benchmarks.timing import Sample, Spread, Timing, interleave, timed

from kvfence.engine.checkpoint import load_model
from kvfence.engine.model import PagedModel
from kvfence.kv import FenceLevel

TARGET_PERCENT = 1.0
OFF, SEALED, CONTROL = "off", "sealed", "control"
LEVELS = {OFF: FenceLevel.OFF, SEALED: FenceLevel.SEALED, CONTROL: FenceLevel.OFF}
CONTEXT_TOKENS = 512
ANSWER_TOKENS = 128  # over which a decode step shares what its prompt cost once
BLOCK_STEPS = PAGE_TOKENS  # a row grows once in these; shares are taken over a block


@dataclass(frozen=True)
class Work:
    """`count` prompts of `tokens` tokens computed together, or a decode step of so many rows."""

    kind: str
    count: int
    tokens: int

    @property
    def name(self) -> str:
        """For a table."""
        return f"{self.kind} {self.count} x {self.tokens}"


@dataclass(frozen=True)
class Piece:
    """One run's own calls of the fence (µs by name), and all of its CPU time."""

    parts_us: dict[str, float]
    cpu_ms: float


PREFILLS = (Work("prefill", 1, CONTEXT_TOKENS), Work("prefill", 16, 128))
DECODES = (Work("decode", 1, CONTEXT_TOKENS), Work("decode", 16, CONTEXT_TOKENS))


def run(
    *, quick: bool, threads: int = 1, model: str | None = None, dtype: str = "bfloat16"
) -> dict[str, Any]:
    """Measure both levels for every work. `quick` takes few repeats."""
    paged = load_model(model, dtype=dtype, threads=threads)
    rows = [_prefill(paged, work, 1 if quick else 5) for work in PREFILLS]
    rows += [_decode(paged, work, 1 if quick else 5) for work in DECODES]
    return {
        "name": "fence_end_to_end",
        "dtype": dtype,
        "threads": threads,
        "answer_tokens": ANSWER_TOKENS,
        "target_percent": TARGET_PERCENT,
        "rows": rows,
    }


def _prefill(paged: PagedModel, work: Work, repeats: int) -> dict[str, Any]:
    """A prompt's whole way: reserve, compute, seal, send, verify, adopt; the first round is not counted."""
    pages = work.count * (work.tokens // PAGE_TOKENS + 2)
    rigs = _rigs(paged, prompt_pages=pages, decode_pages=pages)
    pieces: dict[str, list[Piece]] = {name: [] for name in LEVELS}
    rounds = itertools.count()

    def one(name: str) -> None:
        first = next(rounds)  # other tokens each time: nothing may be remembered
        sample = timed(lambda: _hand_over(rigs[name], work, first))
        pieces[name].append(_piece(rigs[name], sample, 1))

    samples = interleave({name: functools.partial(one, name) for name in LEVELS}, repeats + 1)
    counted = {name: found[1:] for name, found in samples.items()}
    kept = {name: found[1:] for name, found in pieces.items()}
    return _row(work, counted, kept, (*WRITER_PARTS, *HANDOVER_PARTS))


def _rigs(paged: PagedModel, *, prompt_pages: int, decode_pages: int) -> dict[str, FenceRig]:
    return {
        name: FenceRig(paged, level, prompt_pages=prompt_pages, decode_pages=decode_pages)
        for name, level in LEVELS.items()
    }


def _hand_over(rig: FenceRig, work: Work, first: int) -> None:
    prompts = [
        rig.reserve(tuple((first * 31 + index * 17 + place) % 97 for place in range(work.tokens)))
        for index in range(work.count)
    ]
    rig.compute(prompts)
    for prompt in prompts:
        rig.send(prompt)
    rows = [rig.accept(prompt) for prompt in prompts]
    for prompt, row in zip(prompts, rows, strict=True):
        rig.forget(prompt, row=row)


def _decode(paged: PagedModel, work: Work, blocks: int) -> dict[str, Any]:
    """Steps in turn, level by level; the first block is not counted."""
    steps = (blocks + 1) * BLOCK_STEPS
    pages = work.count * (-(-(work.tokens + steps) // PAGE_TOKENS) + 3)
    rigs = _rigs(paged, prompt_pages=work.tokens // PAGE_TOKENS + 1, decode_pages=pages)
    once_us: dict[str, dict[str, float]] = {}
    for name, rig in rigs.items():
        rig.start_rows([work.tokens - row for row in range(work.count)])
        taken = rig.meter.take()
        once_us[name] = {part: taken.get(part, 0) / 1e3 / ANSWER_TOKENS for part in HANDOVER_PARTS}
    variants = {name: rig.step for name, rig in rigs.items()}
    interleave(variants, BLOCK_STEPS)
    for rig in rigs.values():
        rig.meter.take()
    kept: dict[str, list[Piece]] = {name: [] for name in LEVELS}
    counted: dict[str, list[Sample]] = {name: [] for name in LEVELS}
    for _ in range(blocks):
        for name, samples in interleave(variants, BLOCK_STEPS).items():
            counted[name] += samples
            total = Sample(0.0, sum(sample.cpu_ms for sample in samples))
            piece = _piece(rigs[name], total, BLOCK_STEPS)
            kept[name].append(Piece({**piece.parts_us, **once_us[name]}, piece.cpu_ms))
    return _row(work, counted, kept, (*STEP_PARTS, *HANDOVER_PARTS))


def _piece(rig: FenceRig, sample: Sample, steps: int) -> Piece:
    taken = rig.meter.take()
    return Piece({name: spent / 1e3 / steps for name, spent in taken.items()}, sample.cpu_ms / steps)


def _row(
    work: Work, samples: dict[str, list[Sample]], pieces: dict[str, list[Piece]], parts: tuple[str, ...]
) -> dict[str, Any]:
    """Put one work's figures together: the fence's own calls, and both levels end to end."""
    off_us = statistics.median(_all_us(piece, parts) for piece in pieces[OFF])
    gross = [_percent(_all_us(piece, parts), piece) for piece in pieces[SEALED]]
    net = [_percent(_all_us(piece, parts) - off_us, piece) for piece in pieces[SEALED]]
    timings = {name: Timing.of(found) for name, found in samples.items()}
    return {
        "work": work.name,
        **asdict(work),
        "parts_us": {
            part: {name: _median_us(pieces[name], part) for name in (OFF, SEALED)} for part in parts
        },
        "share_sealed_percent": asdict(Spread.of(gross)),
        "share_over_off_percent": asdict(Spread.of(net)),
        "end_to_end": {name: asdict(timing) for name, timing in timings.items()},
        "overhead_percent": {
            name: {
                "wall_least": _overhead(timings[OFF].wall_ms.least, timings[name].wall_ms.least),
                "cpu_least": _overhead(timings[OFF].cpu_ms.least, timings[name].cpu_ms.least),
                "cpu_rounds_median": _rounds_overhead(samples[OFF], samples[name]),
            }
            for name in (SEALED, CONTROL)
        },
    }


def _all_us(piece: Piece, parts: tuple[str, ...]) -> float:
    return sum(piece.parts_us.get(part, 0.0) for part in parts)


def _percent(spent_us: float, piece: Piece) -> float:
    return 100 * spent_us / 1e3 / piece.cpu_ms


def _median_us(pieces: list[Piece], part: str) -> float:
    return round(statistics.median(piece.parts_us.get(part, 0.0) for piece in pieces), 1)


def _overhead(plain: float, fenced: float) -> float:
    return round(100 * (fenced / plain - 1), 2)


def _rounds_overhead(plain: list[Sample], fenced: list[Sample]) -> float:
    ratios = [b.cpu_ms / a.cpu_ms for a, b in zip(plain, fenced, strict=True)]
    return _overhead(1.0, statistics.median(ratios))


def main() -> None:
    """Parse the command line, measure, print JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--threads", type=int, default=1, help="threads of the model")
    parser.add_argument("--model", default=None, help="HF folder or GGUF file")
    arguments = parser.parse_args()
    print(json.dumps(run(quick=arguments.quick, threads=arguments.threads, model=arguments.model), indent=2))


if __name__ == "__main__":
    main()
