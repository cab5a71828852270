"""The paged model against plain transformers: the same module, threads and dtype, interleaved.

Rules: both sides run in turn in one process, so that they share whatever else the machine does; figures
are the least of the repeats (wall and CPU time), the spread is shown beside them. Ratios are speed of
paged over plain; 1.00 is equal. Nothing here fails on a slow machine: the targets are printed.

Run it: python benchmarks/plain_vs_paged.py [--quick] [--threads N] [--model PATH]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from kvfence.engine.attention import IMPLEMENTATION
from kvfence.engine.checkpoint import load_model
from kvfence.engine.model import DecodeRow, PagedModel, PrefillChunk
from kvfence.engine.pool_views import PoolViews, pool_views
from kvfence.kv.pool import Pool

PAGE_TOKENS = 16
CONTEXT_TOKENS = 512
PLAIN = "sdpa"  # what transformers itself would choose


@dataclass(frozen=True)
class Case:
    """`count` sequences of `tokens` tokens: computed (prefill), or extended by one token (decode)."""

    kind: str
    count: int
    tokens: int
    target: float


CASES = (
    Case("decode", 16, CONTEXT_TOKENS, 0.95),
    Case("decode", 1, CONTEXT_TOKENS, 0.90),
    Case("prefill", 1, 512, 0.95),
    Case("prefill", 16, 128, 0.95),
)


@dataclass(frozen=True)
class Figures:
    """Least and largest of the repeats, in milliseconds."""

    wall_ms: float
    wall_max_ms: float
    cpu_ms: float
    cpu_max_ms: float


class Bench:
    """One model in one dtype with a pool, and both ways to run a case."""

    def __init__(self, paged: PagedModel) -> None:
        self.paged = paged
        layout = paged.page_layout(PAGE_TOKENS)
        self.pool = Pool.create(layout, 16 * layout.pages_for(CONTEXT_TOKENS + 64) + 64)
        self.views: PoolViews = pool_views(self.pool)
        self.source = torch.Generator().manual_seed(1)

    def sides(self, case: Case) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Return two functions that do the same work: plain, then paged."""
        ids = torch.randint(self.paged.vocab_size, (case.count, case.tokens), generator=self.source)
        return (self._decode if case.kind == "decode" else self._prefill)(ids)

    def _prefill(self, ids: torch.Tensor) -> tuple[Callable[[], Any], Callable[[], Any]]:
        chunks = [
            PrefillChunk(row.tolist(), 0, self._table(i, len(row)), wants_logits=True)
            for i, row in enumerate(ids)
        ]

        def plain() -> Any:
            with torch.inference_mode():
                return self.paged.module(input_ids=ids, use_cache=True, logits_to_keep=1)

        return plain, lambda: self.paged.prefill(self.views, chunks)

    def _decode(self, ids: torch.Tensor) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Plain grows its cache by a token a call; paged moves its position along with it."""
        tables = [self._table(i, ids.shape[1] + 64) for i in range(len(ids))]
        for i, row in enumerate(ids):
            self.paged.prefill(self.views, [PrefillChunk(row.tolist(), 0, tables[i], wants_logits=False)])
        self.paged.module.set_attn_implementation(PLAIN)
        with torch.inference_mode():
            cache = self.paged.module(input_ids=ids, use_cache=True, logits_to_keep=1).cache
        state = {"position": ids.shape[1]}
        tokens = ids[:, :1]

        def plain() -> Any:
            with torch.inference_mode():
                return self.paged.module(input_ids=tokens, cache=cache, use_cache=True)

        def paged() -> Any:
            rows = [
                DecodeRow(int(token), state["position"], table)
                for token, table in zip(tokens, tables, strict=True)
            ]
            state["position"] += 1
            return self.paged.decode(self.views, rows)

        return plain, paged

    def _table(self, index: int, tokens: int) -> list[int]:
        """Pages of a sequence, scattered as after hours of serving."""
        width = self.paged.page_layout(PAGE_TOKENS).pages_for(tokens)
        stride = (self.views.padding_page - 1) // 16
        return [page * 16 + index for page in reversed(range(min(width, stride)))]

    def measure(self, case: Case, repeats: int) -> tuple[Figures, Figures]:
        """Run both sides in turn, after one warm-up each."""
        sides = self.sides(case)
        names = (PLAIN, IMPLEMENTATION)
        times: list[list[tuple[float, float]]] = [[], []]
        for repeat in range(repeats + 1):
            for index, (name, side) in enumerate(zip(names, sides, strict=True)):
                self.paged.module.set_attn_implementation(name)
                wall, cpu = time.perf_counter(), time.process_time()
                side()
                if repeat:
                    times[index].append((time.perf_counter() - wall, time.process_time() - cpu))
        self.paged.module.set_attn_implementation(IMPLEMENTATION)
        plain, paged = (_figures(side) for side in times)
        return plain, paged


def _figures(times: list[tuple[float, float]]) -> Figures:
    walls, cpus = zip(*times, strict=True)
    values = (min(walls), max(walls), min(cpus), max(cpus))
    return Figures(*(round(value * 1e3, 2) for value in values))


def run(*, quick: bool, threads: int = 1, model: str | None = None) -> dict[str, Any]:
    """Measure every case in both dtypes. `quick` takes few repeats."""
    rows = []
    for dtype in ("bfloat16", "float32"):
        bench = Bench(load_model(model, dtype=dtype, threads=threads))
        for case in CASES:
            repeats = (2 if quick else 5) if case.kind == "prefill" else (6 if quick else 24)
            plain, paged = bench.measure(case, repeats)
            rows.append(
                {
                    "dtype": dtype,
                    **asdict(case),
                    "plain": asdict(plain),
                    "paged": asdict(paged),
                    "wall_ratio": round(plain.wall_ms / paged.wall_ms, 3),
                    "cpu_ratio": round(plain.cpu_ms / paged.cpu_ms, 3),
                }
            )
        del bench
    return {"name": "plain_vs_paged", "threads": threads, "torch": torch.__version__, "rows": rows}


def table(result: dict[str, Any]) -> str:
    """Format the result as a Markdown table."""
    lines = [
        "| dtype | work | plain ms (max) | paged ms (max) | wall | CPU | target |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["rows"]:
        plain, paged = row["plain"], row["paged"]
        lines.append(
            f"| {row['dtype']} | {row['kind']} {row['count']} x {row['tokens']} "
            f"| {plain['wall_ms']:.1f} ({plain['wall_max_ms']:.1f}) "
            f"| {paged['wall_ms']:.1f} ({paged['wall_max_ms']:.1f}) "
            f"| {row['wall_ratio']:.2f} | {row['cpu_ratio']:.2f} | {row['target']:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
    parser.add_argument("--model", default=None, help="HF folder or GGUF file")
    arguments = parser.parse_args()
    print(table(run(quick=arguments.quick, threads=arguments.threads, model=arguments.model)))


if __name__ == "__main__":
    main()
