"""Prompts of a prefill node: chunks in, the first token out."""

import pytest
from tests.engine.counting_model import CountingModel

from kvfence.engine.prefill_executor import PrefillExecutor, PromptJob
from kvfence.engine.sampling import SamplingParams
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import LeaseId, PageRef

GREEDY = SamplingParams(seed=1, temperature=0.0)


def job_of(sequence=1, tokens=(1, 2, 3, 4, 5), *, cached_tokens=0, made_tokens=0) -> PromptJob:
    pages = (PageRef(10 * sequence, 1), PageRef(10 * sequence + 1, 1))
    return PromptJob(LeaseId(7, sequence), tuple(tokens), pages, GREEDY, made_tokens, cached_tokens)


@pytest.fixture
def model():
    return CountingModel()


def executor_of(model, chunk_tokens=64):
    return PrefillExecutor(model, None, chunk_tokens=chunk_tokens)


def test_a_prompt_that_fits_a_chunk_brings_its_first_token(model):
    executor = executor_of(model)
    executor.start(job_of())
    (done,) = executor.forward(executor.plan())
    assert (done.plan.start, done.plan.end, done.plan.last, done.first.token) == (0, 5, True, 6)
    assert executor.plan() == []


def test_only_the_last_chunk_of_a_prompt_has_a_token(model):
    executor = executor_of(model, chunk_tokens=2)
    executor.start(job_of())
    done = [executor.forward(executor.plan())[0] for _ in range(3)]
    assert [chunk.first and chunk.first.token for chunk in done] == [None, None, 6]
    assert [list(asked[0].tokens) for asked in model.asked] == [[1, 2], [3, 4], [5]]
    assert [asked[0].wants_logits for asked in model.asked] == [False, False, True]


def test_what_the_prefix_cache_had_is_not_computed(model):
    executor = executor_of(model)
    executor.start(job_of(cached_tokens=4))
    executor.forward(executor.plan())
    (asked,) = model.asked[0]
    assert (asked.start, list(asked.tokens), asked.pages) == (4, [5], [10, 11])


def test_prompts_that_end_together_get_each_their_own_token(model):
    executor = executor_of(model)
    executor.start(job_of(1, (1, 2)))
    executor.start(job_of(2, (7, 8)))
    done = executor.forward(executor.plan())
    assert {chunk.plan.lease.sequence: chunk.first.token for chunk in done} == {1: 3, 2: 9}


def test_a_prompt_whose_logits_are_no_numbers_fails_alone(model):
    model.broken = {2}
    executor = executor_of(model)
    executor.start(job_of(1, (1, 2)))
    executor.start(job_of(2, (7, 8)))
    done = executor.forward(executor.plan())
    assert {chunk.plan.lease.sequence: chunk.first and chunk.first.token for chunk in done} == {1: None, 2: 9}


def test_a_prompt_that_was_stopped_is_computed_no_more(model):
    executor = executor_of(model, chunk_tokens=2)
    executor.start(job_of())
    executor.forward(executor.plan())
    executor.stop(LeaseId(7, 1))
    executor.stop(LeaseId(7, 1))
    assert executor.plan() == []


def test_a_prompt_starts_once(model):
    executor = executor_of(model)
    executor.start(job_of())
    with pytest.raises(InvariantError, match="started once"):
        executor.start(job_of())


def test_output_of_earlier_attempts_is_no_prompt_to_the_sampler():
    row = job_of(tokens=(1, 2, 3, 3), made_tokens=2).sample_row()
    assert (tuple(row.prompt_tokens), row.output_counts, row.position) == ((1, 2), {3: 2}, 4)
