"""The self-test at load: the paged model against the same module without pages.

Rules: it stands behind the probe and the refusals, so it looks at numbers alone: prompts packed with
unequal lengths, chunks that cut pages, lengths that cross the window if there is one, decode. A
difference above the tolerance, or any exception, refuses the model. A pass is remembered by weights,
dtype, device, library versions and this code.

A model in 16 bits is tested twice: its weights widened to float32 for a moment, where a wrong slot
cannot hide behind rounding, and as it will run, where two right implementations differ by rounding and
a router of experts may flip. Weights too large to widen are tested only as they will run.

It does not prove equality at every length; the equality tests of the repository do more.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from kvfence.engine.attention import IMPLEMENTATION
from kvfence.engine.loading import cache_dir, write_json
from kvfence.engine.model import DecodeRow, PagedModel, PrefillChunk
from kvfence.engine.pool_views import TORCH_DTYPES, PoolViews, buffer_views
from kvfence.engine.probe import probe
from kvfence.engine.refusals import RefusedModelError, model_name, refusing
from kvfence.kv.memory import available_memory_bytes
from kvfence.protocol.errors import OperatorError

# Largest difference of a logit, as a share of the largest logit of its position. Measured on SmolLM2 and
# eleven tiny architectures: right at most 4e-6, the mildest wrong mask (one slot too many) 0.14.
FLOAT32_TOLERANCE = 1e-3
# Median over the positions of the same share. Right at most 0.016, attention over wrong pages 0.36.
ROUNDED_TOLERANCE = 0.05
# Widening may take this share of the memory that is free.
WIDENING_SHARE = 0.5
PAGE_TOKENS = 4
# With chunks of 5: one token, a first chunk that is the last, and last chunks that are not one token long.
PROMPT_TOKENS = (1, 2, 8, 13)
DECODE_STEPS = 2
CHUNK_TOKENS = 5
# A wider window is narrowed for the test, so that crossing it costs little.
WINDOW_TOKENS_MAX = 8
PLAIN_IMPLEMENTATION = "eager"
CODE = ("attention", "attention_decode", "attention_kernels", "attention_pages", "attention_prefill", "model")


@dataclass(frozen=True, slots=True)
class Sequences:
    """Random token sequences; of each, the last `DECODE_STEPS` tokens are fed by decode steps."""

    tokens: tuple[tuple[int, ...], ...]

    @classmethod
    def draw(cls, vocab_size: int) -> "Sequences":
        """Draw the same sequences for a vocabulary each time."""
        source = torch.Generator().manual_seed(20260909)
        lengths = [length + DECODE_STEPS for length in PROMPT_TOKENS]
        drawn = [torch.randint(vocab_size, (length,), generator=source).tolist() for length in lengths]
        return cls(tuple(tuple(tokens) for tokens in drawn))


def ensure_tested(paged: PagedModel) -> None:
    """Run the self-test unless these weights have passed it here before. Raises OperatorError."""
    memo = None if paged.revision is None else _memo(paged, paged.revision)
    if memo is not None and memo.is_file():
        return
    worst = run_selftest(paged)
    if memo is not None:
        write_json(memo, {"model": model_name(paged.module.config), "worst_difference": worst})


def run_selftest(paged: PagedModel) -> float:
    """Return the largest difference in float32 (in 16 bits: the median) that passed.

    Raises RefusedModelError when one is above its tolerance. Mutates nothing for longer than it runs.
    """
    name = model_name(paged.module.config)
    results = []
    with refusing(paged.module.config, "the self-test"), narrowed(paged):
        sequences = Sequences.draw(paged.vocab_size)
        if paged.dtype == "float32" or _can_widen(paged):
            with widened(paged) as wide:
                shares = differences(plain_logits(wide, sequences), paged_logits(wide, sequences))
            results.append((float(shares.amax()), FLOAT32_TOLERANCE))
        if paged.dtype != "float32":
            shares = differences(plain_logits(paged, sequences), paged_logits(paged, sequences))
            results.append((float(shares.median()), ROUNDED_TOLERANCE))
    for share, tolerance in results:
        if not share <= tolerance:  # a comparison that NaN fails too
            reason = f"over pages its logits are off by {share:.1e} of the largest, more than {tolerance:.0e}"
            raise RefusedModelError(name, reason)
    return results[0][0]


def differences(expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return, for each position, the largest difference of a logit relative to the largest logit."""
    shares = []
    for want, got in zip(expected, actual, strict=True):
        scale = want.abs().amax(dim=-1).clamp_min(1e-6)
        shares.append((want - got).abs().amax(dim=-1) / scale)
    return torch.cat(shares)


def plain_logits(paged: PagedModel, sequences: Sequences) -> list[torch.Tensor]:
    """Return, for each sequence alone, the plain model's logits from the prompt's last token on."""
    results = []
    with attention_set_to(paged.module, PLAIN_IMPLEMENTATION), torch.inference_mode():
        for tokens in sequences.tokens:
            ids = torch.tensor([tokens], device=paged.device)
            logits = paged.module(input_ids=ids, use_cache=False).logits[0]
            results.append(logits[-DECODE_STEPS - 1 :].to(torch.float32))
    return results


def paged_logits(paged: PagedModel, sequences: Sequences) -> list[torch.Tensor]:
    """Return the same logits over pages: prompts packed and in chunks, then decode steps of all rows."""
    views, tables = _pages(paged, sequences)
    rows: list[list[torch.Tensor]] = [[] for _ in sequences.tokens]
    prompts = [tokens[:-DECODE_STEPS] for tokens in sequences.tokens]
    for start in range(0, max(len(prompt) for prompt in prompts), CHUNK_TOKENS):
        active = [index for index, prompt in enumerate(prompts) if start < len(prompt)]
        chunks = [_chunk(prompts[index], start, tables[index]) for index in active]
        logits = iter(paged.prefill(views, chunks))
        for index, chunk in zip(active, chunks, strict=True):
            if chunk.wants_logits:
                rows[index].append(next(logits))
    for step in range(DECODE_STEPS):
        positions = [len(prompt) + step for prompt in prompts]
        batch = [
            DecodeRow(tokens[position], position, table)
            for tokens, position, table in zip(sequences.tokens, positions, tables, strict=True)
        ]
        for index, row in enumerate(paged.decode(views, batch)):
            rows[index].append(row)
    return [torch.stack(row) for row in rows]


@contextmanager
def attention_set_to(module: Any, implementation: str) -> Iterator[None]:
    """Let the module run with another attention function for a while."""
    module.set_attn_implementation(implementation)
    try:
        yield
    finally:
        module.set_attn_implementation(IMPLEMENTATION)


@contextmanager
def widened(paged: PagedModel) -> Iterator[PagedModel]:
    """Lend the model with its 16-bit weights as float32; the very same tensors are put back afterwards."""
    narrow = TORCH_DTYPES[paged.dtype]
    tensors = [*paged.module.parameters(), *paged.module.buffers()]
    kept = [(tensor, tensor.data) for tensor in tensors if tensor.dtype == narrow]
    try:
        for tensor, data in kept:
            tensor.data = data.to(torch.float32)
        yield PagedModel(paged.module, paged.facts)
    finally:
        for tensor, data in kept:
            tensor.data = data


@contextmanager
def narrowed(paged: PagedModel) -> Iterator[None]:
    """Narrow the windows of the module for a while, so that short prompts cross them.

    Raises OperatorError where that is not possible: what cannot be tested is not served.
    """
    holders = [*paged.module.modules(), paged.module.config, paged.module.config.get_text_config()]
    wide = [
        (holder, holder.sliding_window)
        for holder in holders
        if isinstance(getattr(holder, "sliding_window", None), int)
        and holder.sliding_window > WINDOW_TOKENS_MAX
    ]
    try:
        for holder, _ in wide:
            holder.sliding_window = WINDOW_TOKENS_MAX
        windows = [fact.window for fact in probe(paged.module) if fact.window is not None]
        if any(window > WINDOW_TOKENS_MAX for window in windows):
            raise OperatorError("its attention window cannot be narrowed, so crossing it cannot be tested")
        yield
    finally:
        for holder, window in wide:
            holder.sliding_window = window


def _can_widen(paged: PagedModel) -> bool:
    if paged.device.type != "cpu":
        return False
    needed_bytes = sum(parameter.numel() for parameter in paged.module.parameters()) * 4
    free_bytes = available_memory_bytes()
    return free_bytes is not None and needed_bytes < WIDENING_SHARE * free_bytes


def _chunk(prompt: Sequence[int], start: int, pages: Sequence[int]) -> PrefillChunk:
    tokens = prompt[start : start + CHUNK_TOKENS]
    return PrefillChunk(tokens, start, pages, wants_logits=start + len(tokens) == len(prompt))


def _pages(paged: PagedModel, sequences: Sequences) -> tuple[PoolViews, list[list[int]]]:
    """Make a small pool of its own, its pages dealt out in turn so that no sequence's lie side by side."""
    layout = paged.page_layout(PAGE_TOKENS)
    count = len(sequences.tokens)
    width = max(layout.pages_for(len(tokens)) for tokens in sequences.tokens)
    buffer = torch.zeros((count * width + 1) * layout.page_bytes, dtype=torch.uint8, device=paged.device)
    tables = [[page * count + index for page in reversed(range(width))] for index in range(count)]
    return buffer_views(buffer, layout), tables


def _memo(paged: PagedModel, revision: str) -> Path:
    code = hashlib.sha256()
    for name in (*CODE, "selftest"):
        code.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    facts = (
        revision,
        paged.dtype,
        paged.device.type,
        torch.__version__,
        transformers.__version__,
        code.hexdigest(),
    )
    return cache_dir() / "selftests" / f"{hashlib.sha256('|'.join(facts).encode()).hexdigest()}.json"
