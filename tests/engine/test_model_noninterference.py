"""Law 12, exactly: with equal shapes, tenant B's numbers are bitwise the same whatever the others hold."""

import random

import pytest
import torch
from tests.engine.tiny_models import make_views, served

from kvfence.engine import attention_prefill
from kvfence.engine.model import DecodeRow, PrefillChunk

PAGE = 16
DENSE = ["llama", "mistral", "gemma2", "gpt2"]
DTYPES = [torch.float32, torch.bfloat16]


def draw(seed, length, vocab):
    source = random.Random(seed)
    return [source.randrange(vocab) for _ in range(length)]


def run(paged, others, lengths, own, chunk):
    """Sequence 0 is B's; the rest are drawn from the seed `others`. Returns B's logits and its pages' numbers."""
    width = -(-max(lengths) // PAGE)
    views = make_views(paged, width * len(lengths), PAGE)
    tables = [[i + len(lengths) * page for page in range(width)] for i in range(len(lengths))]
    prompts = [own if i == 0 else draw(others + i, n, paged.vocab_size) for i, n in enumerate(lengths)]
    results = []
    for start in range(0, max(lengths) - 2, chunk):
        active = [i for i, n in enumerate(lengths) if start < n - 2]
        parts = [prompts[i][: lengths[i] - 2][start : start + chunk] for i in active]
        step = [PrefillChunk(p, start, tables[i], True) for i, p in zip(active, parts, strict=True)]
        logits = paged.prefill(views, step)
        results += [logits[active.index(0)]] if 0 in active else []
    for step in range(2):
        rows = [DecodeRow(prompts[i][n - 2 + step], n - 2 + step, tables[i]) for i, n in enumerate(lengths)]
        results.append(paged.decode(views, rows)[0])
    kept = [view[tables[0]].clone() for view in (*views.k, *views.v)]
    return results + kept


def check_bitwise(paged, lengths, chunk):
    own = draw(1, lengths[0], paged.vocab_size)
    first, second = (run(paged, others, lengths, own, chunk) for others in (100, 900))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    changed = run(paged, 100, lengths, [*own[:-1], own[-1] ^ 1], chunk)
    assert not torch.equal(first[-1 - 2 * len(paged.layers)], changed[-1 - 2 * len(paged.layers)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("chunk", [7, 64])
def test_tiny_models(name, dtype, chunk):
    check_bitwise(served(name, dtype), [40, 40, 13, 66], chunk)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_split_chunk(dtype, monkeypatch):
    monkeypatch.setattr(attention_prefill, "SPLIT_TOKENS_MIN", 64)
    check_bitwise(served("llama", dtype), [402, 402], 280)


@pytest.mark.parametrize("which", ["smollm2", "smollm2_bf16"])
def test_the_default_model(which, request):
    check_bitwise(request.getfixturevalue(which), [40, 25, 40], 24)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["smollm2", "smollm2_bf16"])
def test_the_default_model_in_a_large_batch(which, request):
    check_bitwise(request.getfixturevalue(which), [300, *range(290, 305)], 256)
