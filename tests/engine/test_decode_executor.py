"""Rows of a decode node: where each is, what it may still make, and when it needs a page."""

import pytest
import torch
from tests.engine.counting_model import VOCAB, CountingModel

from kvfence.engine.decode_executor import DecodeExecutor, Row, count_token, sample_finite
from kvfence.engine.sampler import SampleRow
from kvfence.engine.sampling import SamplingParams
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import AttemptId, EndReason, LeaseId, PageRef, Peer

PAGE_TOKENS = 4
GREEDY = SamplingParams(seed=1, temperature=0.0)


def row_of(sequence=1, *, position=2, last_token=5, pages=1, left_tokens=9, sampling=GREEDY) -> Row:
    return Row(
        lease=LeaseId(7, sequence),
        attempt=AttemptId(1, sequence, 1),
        router=Peer("router", 1),
        sampling=sampling,
        pages=[PageRef(10 * sequence + page, 1) for page in range(pages)],
        position=position,
        last_token=last_token,
        left_tokens=left_tokens,
    )


@pytest.fixture
def model():
    return CountingModel()


@pytest.fixture
def executor(model):
    return DecodeExecutor(model, None, page_tokens=PAGE_TOKENS, max_batch=4)


def step(executor):
    ready, _ = executor.plan()
    return executor.advance(ready, executor.forward(ready))


def test_a_step_feeds_each_rows_last_token_at_its_position(executor, model):
    executor.start(row_of(1))
    executor.start(row_of(2, position=3, last_token=8, pages=2))
    assert [stepped.sampled.token for stepped in step(executor)] == [6, 9]
    assert [(row.token, row.position, list(row.pages)) for row in model.asked[0]] == [
        (5, 2, [10]),
        (8, 3, [20, 21]),
    ]


def test_a_row_moves_on_by_its_token(executor):
    row = row_of()
    executor.start(row)
    step(executor)
    assert (row.position, row.last_token, row.left_tokens, row.output_counts) == (3, 6, 8, {6: 1})


def test_a_row_whose_table_is_full_waits_for_a_page_and_goes_on_with_it(executor):
    row = row_of(position=PAGE_TOKENS)
    executor.start(row)
    assert executor.plan() == ([], [row.lease])
    assert executor.plan() == ([], []), "it is asked for once"
    executor.grow(row.lease, PageRef(99, 1))
    assert executor.plan() == ([row], [])
    assert row.block_table == [10, 99]


def test_a_row_that_was_stopped_is_stepped_and_grown_no_more(executor):
    row = row_of()
    executor.start(row)
    executor.stop(row.lease)
    executor.stop(row.lease)
    executor.grow(row.lease, PageRef(99, 1))
    assert executor.plan() == ([], [])
    assert row.block_table == [10]


def test_a_row_starts_once(executor):
    executor.start(row_of())
    with pytest.raises(InvariantError, match="started once"):
        executor.start(row_of())


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (row_of(last_token=5), None),
        (row_of(last_token=5, left_tokens=0), EndReason.LENGTH),
        (row_of(last_token=0), EndReason.STOP),
        (row_of(last_token=0, left_tokens=0), EndReason.STOP),
        (row_of(last_token=0, sampling=SamplingParams(seed=1, ignore_eos=True)), None),
        (row_of(last_token=5, sampling=SamplingParams(seed=1, stop_token_ids=(5,))), EndReason.STOP),
        (
            row_of(last_token=5, sampling=SamplingParams(seed=1, stop_token_ids=(5,), ignore_eos=True)),
            EndReason.STOP,
        ),
    ],
)
def test_a_row_ends_by_its_last_token_or_its_length(executor, row, reason):
    assert executor.end_of(row) is reason


def test_a_row_whose_logits_are_no_numbers_stays_where_it_is_and_the_others_go_on(executor, model):
    bad, good = row_of(1, last_token=5), row_of(2, last_token=8)
    model.broken = {5}
    executor.start(bad)
    executor.start(good)
    assert [stepped.sampled and stepped.sampled.token for stepped in step(executor)] == [None, 9]
    assert (bad.position, bad.last_token, good.position) == (2, 5, 3)


def test_rows_are_sampled_alike_with_and_without_a_bad_one_beside_them():
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(3))
    rows = [SampleRow(SamplingParams(seed=seed), 4) for seed in range(3)]
    alone = sample_finite(logits, rows)
    logits[1, 0] = torch.nan
    beside = sample_finite(logits, rows)
    assert beside == [alone[0], None, alone[2]]


def test_a_made_token_is_booked():
    row = row_of(left_tokens=3)
    count_token(row, 4)
    count_token(row, 4)
    assert (row.left_tokens, row.output_counts) == (1, {4: 2})
