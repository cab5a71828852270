"""The paged model equals the plain one, for many architectures and on the real default model."""

import random
import subprocess
import sys

import pytest
import torch
from tests.engine.tiny_models import SERVED, VOCAB, make_views, plain, run_paged, served

from kvfence.engine import attention_decode, attention_prefill
from kvfence.engine.model import DecodeRow, PrefillChunk, set_threads
from kvfence.protocol.errors import InvariantError

# The tolerance of equality in float32: largest difference as a share of the largest logit.
TOLERANCE = 1e-4
PAGE = 4


def relative(expected, actual):
    return float(((expected - actual).abs().amax(-1) / expected.abs().amax(-1)).amax())


def draw(seed, lengths, vocab=VOCAB):
    source = random.Random(seed)
    return [[source.randrange(vocab) for _ in range(length)] for length in lengths]


def shuffled_tables(seed, lengths, page_tokens):
    """Block tables without order and with the other sequences' pages between."""
    counts = [-(-length // page_tokens) for length in lengths]
    pages = list(range(sum(counts)))
    random.Random(seed).shuffle(pages)
    return [[pages.pop() for _ in range(count)] for count in counts], sum(counts)


def check_equal(paged, prompts, *, chunk, decode, page_tokens=PAGE):
    lengths = [len(prompt) for prompt in prompts]
    tables, count = shuffled_tables(3, lengths, page_tokens)
    views = make_views(paged, count, page_tokens)
    outputs = run_paged(paged, views, prompts, tables, chunk, decode)
    for prompt, output in zip(prompts, outputs, strict=True):
        expected = plain(paged, prompt)[-decode - 1 :]
        assert relative(expected, output) < TOLERANCE


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("chunk", [64, 5])
def test_tiny_models_equal_plain_in_a_batch_of_unequal_lengths(name, chunk):
    # 36 tokens cross the windows of 12; 3, 4 and 5 are around a page.
    check_equal(served(name), draw(1, [36, 3 + 2, 4 + 2, 5 + 2, 1 + 2, 21]), chunk=chunk, decode=2)


@pytest.mark.parametrize("name", SERVED)
def test_tiny_models_equal_plain_alone(name):
    check_equal(served(name), draw(2, [17]), chunk=7, decode=3)


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_a_large_chunk_after_a_past_is_split_and_merged_where_no_window_forbids_it(name, monkeypatch):
    splits = []
    real = attention_prefill.attend_split
    monkeypatch.setattr(attention_prefill, "SPLIT_TOKENS_MIN", 128)
    monkeypatch.setattr(attention_prefill, "attend_split", lambda *a: splits.append(1) or real(*a))
    check_equal(served(name), draw(4, [400, 390]), chunk=260, decode=1)
    assert bool(splits) == (name == "llama")


def test_decode_in_blocks_of_rows_equals_decode_at_once(monkeypatch):
    paged = served("mistral")
    tables = [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(5)]
    views = fill_with(0.5, paged, 15)
    rows = [DecodeRow(i + 1, 2 * i, table) for i, table in enumerate(tables)]
    whole = paged.decode(views, rows)
    monkeypatch.setattr(attention_decode, "BLOCK_BYTES", 1)
    assert relative(whole, paged.decode(views, rows)) < TOLERANCE


def test_set_threads_gives_the_process_its_share():
    code = (
        "import torch; from kvfence.engine.model import set_threads; set_threads(1); set_threads(1); "
        "assert torch.get_num_threads() == torch.get_num_interop_threads() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(InvariantError):
        set_threads(0)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 33])
def test_smollm2_equals_plain_around_a_page(smollm2, length):
    check_equal(smollm2, draw(5, [length + 2], smollm2.vocab_size), chunk=512, decode=2, page_tokens=16)


def test_smollm2_equals_plain_in_chunks_that_cut_pages_and_in_a_batch(smollm2):
    lengths = [130, 17, 3, 64]
    check_equal(smollm2, draw(6, lengths, smollm2.vocab_size), chunk=50, decode=2, page_tokens=16)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [100, 256, 1024])
def test_smollm2_equals_plain_on_long_prompts(smollm2, chunk):
    lengths = [900, 300, 1, 15, 16, 17, 530]
    check_equal(
        smollm2, draw(7, [n + 3 for n in lengths], smollm2.vocab_size), chunk=chunk, decode=3, page_tokens=16
    )


def fill_with(value, paged, count):
    views = make_views(paged, count, PAGE)
    for view in (*views.k, *views.v):
        view.fill_(value)
    return views


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt_oss"])
def test_a_step_writes_only_its_slots(name):
    paged = served(name)
    views = fill_with(7.0, paged, 6)
    tokens = draw(8, [6])[0]
    paged.prefill(views, [PrefillChunk(tokens, 0, [4, 1], True)])
    paged.decode(views, [DecodeRow(3, 6, [4, 1]), DecodeRow(0, 0, [views.padding_page])])
    written = {(4, slot) for slot in range(4)} | {(1, slot) for slot in range(3)}
    for view in (*views.k, *views.v):
        touched = (view != 7.0).flatten(2).any(-1).nonzero().tolist()
        assert {tuple(place) for place in touched} == written


def test_the_seal_behind_a_page_is_never_touched():
    paged = served("llama")
    layout = paged.page_layout(PAGE)
    views = make_views(paged, 2, PAGE)
    raw = views.k[0].untyped_storage()
    paged.prefill(views, [PrefillChunk(draw(9, [8])[0], 0, [0, 1], True)])
    pages = torch.tensor(raw, dtype=torch.uint8).view(-1, layout.page_bytes)
    assert not pages[:, layout.payload_bytes :].any()
    assert pages[:2, : layout.payload_bytes].any()


def test_finite_junk_in_masked_slots_changes_nothing():
    paged = served("mistral")
    prompts = draw(10, [30, 5])
    tables = [list(range(8)), [8, 9]]
    clean = run_paged(paged, make_views(paged, 10, PAGE), prompts, tables, 7, 2)
    dirty = run_paged(paged, fill_with(11.0, paged, 10), prompts, tables, 7, 2)
    assert all(torch.equal(a, b) for a, b in zip(clean, dirty, strict=True))


def test_logits_come_for_the_chunks_that_want_them_in_their_order():
    paged = served("llama")
    prompts = draw(11, [9, 3, 6, 3])
    chunks = [PrefillChunk(p, 0, [3 * i, 3 * i + 1, 3 * i + 2], i != 2) for i, p in enumerate(prompts)]
    logits = paged.prefill(make_views(paged, 12, PAGE), chunks)
    wanted = [plain(paged, prompt)[-1] for i, prompt in enumerate(prompts) if i != 2]
    assert relative(torch.stack(wanted), logits) < TOLERANCE
    assert logits.dtype == torch.float32


def test_a_step_that_wants_no_logits_returns_none():
    paged = served("llama")
    logits = paged.prefill(make_views(paged, 1, PAGE), [PrefillChunk([1, 2], 0, [0], False)])
    assert logits.shape == (0, VOCAB)


def test_the_caller_may_change_the_logits_it_owns():
    paged = served("llama")
    logits = paged.decode(make_views(paged, 1, PAGE), [DecodeRow(1, 0, [0])])
    logits[0, 0] = 5.0
    assert logits[0, 0] == 5.0


@pytest.mark.parametrize(
    "row", [DecodeRow(1, 4, [0]), DecodeRow(1, -1, [0]), DecodeRow(1, 0, []), DecodeRow(1, 0, [3])]
)
def test_a_row_outside_its_pages_is_an_error(row):
    paged = served("llama")
    with pytest.raises(InvariantError):
        paged.decode(make_views(paged, 2, PAGE), [row])


@pytest.mark.parametrize(
    "chunk",
    [PrefillChunk([1] * 5, 0, [0], True), PrefillChunk([], 0, [0], True), PrefillChunk([1], 4, [0], True)],
)
def test_a_chunk_outside_its_pages_is_an_error(chunk):
    paged = served("llama")
    with pytest.raises(InvariantError):
        paged.prefill(make_views(paged, 2, PAGE), [chunk])


def test_the_model_tells_what_the_node_must_know(smollm2):
    assert smollm2.vocab_size == 49152
    assert smollm2.eos_token_ids == (2,)
    assert smollm2.page_layout(16).token_bytes == 46_080
    assert len(smollm2.layers) == 30
