"""The sampler: distributions, determinism, independence of other rows, penalties against a reference."""

import math
from collections import Counter

import pytest
import torch

from kvfence.engine.sampler import BadLogitsError, Sampled, SampleRow, sample, uniform
from kvfence.engine.sampling import SamplingParams

VOCABULARY = 97


def logits_of(rows: int, vocabulary: int = VOCABULARY, *, seed: int = 7) -> torch.Tensor:
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3


def row(position: int = 5, prompt=(), counts=None, **params) -> SampleRow:
    params.setdefault("seed", 1)
    return SampleRow(SamplingParams(**params), position, prompt, counts or {})


def draws(logits: torch.Tensor, count: int, **params) -> Counter:
    """Sample one row at `count` positions in one batch."""
    rows = [row(position, **params) for position in range(count)]
    return Counter(s.token for s in sample(logits.expand(count, -1), rows))


def chi_square(seen: Counter, probabilities: torch.Tensor, count: int) -> tuple[float, int]:
    """Pearson's statistic and degrees of freedom, over cells with at least 5 expected draws."""
    big = [i for i, p in enumerate(probabilities.tolist()) if p * count >= 5]
    rest = 1 - sum(float(probabilities[i]) for i in big)
    cells = [(seen[i], float(probabilities[i]) * count) for i in big]
    if rest * count >= 5:
        cells.append((count - sum(seen[i] for i in big), rest * count))
    return sum((o - e) ** 2 / e for o, e in cells), len(cells) - 1


def assert_drawn_from(seen: Counter, probabilities: torch.Tensor, count: int) -> None:
    statistic, freedom = chi_square(seen, probabilities, count)
    # Wilson-Hilferty: about 5 sigma, and the seeds are fixed, so that this either always passes or never.
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert abs(z) < 5, f"chi-square {statistic:.1f} with {freedom} degrees of freedom"
    assert all(float(probabilities[token]) > 0 for token in seen), "a token of probability 0 was drawn"


def test_uniform_is_a_fixed_function_of_seed_and_position():
    assert uniform(1, 2) == uniform(1, 2)
    assert len({uniform(s, p) for s in range(20) for p in range(20)}) == 400
    assert uniform(-1, 0) == uniform(2**64 - 1, 0)
    assert all(0 <= uniform(3, p) < 1 for p in range(1000))
    assert uniform(42, 7) == 0.2167631208504872  # pinned: an upgrade must not change running answers


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_draws_follow_the_softmax(temperature):
    logits = logits_of(1)[0]
    seen = draws(logits, 4000, temperature=temperature)
    assert_drawn_from(seen, torch.softmax(logits / temperature, -1), 4000)


def test_the_distribution_test_can_fail():
    logits = logits_of(1)[0]
    seen = draws(logits, 4000, temperature=1.0)
    with pytest.raises(AssertionError, match="chi-square"):
        assert_drawn_from(seen, torch.softmax(logits / 1.3, -1), 4000)


def reference_filters(logits, *, top_k=None, top_p=1.0, min_p=0.0):
    """The same filters, written token by token."""
    probabilities = torch.softmax(logits.double(), -1).tolist()
    largest = max(probabilities)
    kept = [(p, -i) for i, p in enumerate(probabilities) if p >= min_p * largest]
    kept.sort(reverse=True)
    kept = kept[:top_k]
    total, cumulated, nucleus = sum(p for p, _ in kept), 0.0, []
    for p, minus_id in kept:
        nucleus.append((p, -minus_id))
        cumulated += p
        if cumulated >= top_p * total:
            break
    result = torch.zeros(len(probabilities), dtype=torch.float64)
    for p, token in nucleus:
        result[token] = p
    return result / result.sum()


@pytest.mark.parametrize(
    "filters",
    [
        {"top_k": 5},
        {"top_k": 1},
        {"top_p": 0.8},
        {"top_p": 0.001},
        {"min_p": 0.2},
        {"top_k": 20, "top_p": 0.7, "min_p": 0.02},
        {"top_k": 10_000},
    ],
)
def test_filters_keep_what_the_reference_keeps(filters):
    logits = logits_of(1, seed=11)[0]
    wanted = reference_filters(logits, **filters)
    seen = draws(logits, 3000, **filters)
    if int((wanted > 0).sum()) == 1:
        assert set(seen) == {int(wanted.argmax())}
    else:
        assert_drawn_from(seen, wanted, 3000)


@pytest.mark.parametrize("vocabulary", [400, 2000, 20_000])
def test_top_p_on_a_flat_distribution_takes_a_wider_look(vocabulary):
    logits = torch.zeros(1, vocabulary)
    seen = {sample(logits, [row(p, top_p=0.5)])[0].token for p in range(100)}
    assert max(seen) < vocabulary / 2, "of equal tokens the lower ids are kept"
    assert max(seen) > vocabulary * 0.45, "the nucleus is as wide as it must be"


def test_greedy_takes_the_lowest_of_equal_tokens():
    logits = torch.zeros(2, 9)
    logits[0, [3, 6]] = 1.0
    assert [s.token for s in sample(logits, [row(temperature=0.0)] * 2)] == [3, 0]


def test_tiny_temperature_is_greedy_and_finite():
    logits = logits_of(1)
    assert sample(logits, [row(temperature=1e-30)])[0].token == int(logits.argmax())


@pytest.mark.parametrize("tiny", [1e-38, 1e-45, 1e-46, 1e-300, 5e-324])
@pytest.mark.parametrize("filters", [{}, {"top_p": 0.5}, {"top_k": 3}, {"min_p": 0.1}])
def test_a_number_too_small_for_float32_never_gives_a_token_outside_the_vocabulary(tiny, filters):
    logits = logits_of(1)
    assert sample(logits, [row(temperature=tiny, **filters)])[0].token == int(logits.argmax())
    prompt = tuple(range(VOCABULARY))
    for temperature in (0.0, tiny, 1.0):
        penalised = row(prompt=prompt, temperature=temperature, repetition_penalty=tiny, **filters)
        token = sample(logits, [penalised])[0].token
        assert 0 <= token < VOCABULARY
        assert logits[0, token] > 0  # it divides what is above zero and takes the rest to zero


def test_no_token_without_weight_is_ever_drawn(monkeypatch):
    logits = torch.full((1, 6), -math.inf)
    logits[0, [1, 4]] = 0.0
    for share, token in ((0.0, 1), (0.499, 1), (0.5, 4), (1 - 2**-53, 4), (1.0, 4)):
        monkeypatch.setattr("kvfence.engine.sampler.uniform", lambda *_, share=share: share)
        assert sample(logits, [row()])[0].token == token


def test_a_row_does_not_depend_on_the_others_or_on_the_batch():
    logits = logits_of(16, 4099)
    rows = [
        row(
            100 + i,
            seed=i,
            temperature=(0.0, 0.7, 1.0, 1.9)[i % 4],
            top_p=(1.0, 0.9)[i % 2],
            top_k=(None, 40, 3)[i % 3],
            repetition_penalty=(1.0, 1.2)[i // 8],
            prompt=(1, 2, 3),
            counts={5: 2},
            logprobs=3,
        )
        for i in range(16)
    ]
    together = sample(logits, rows)
    alone = [sample(logits[i : i + 1], [rows[i]])[0] for i in range(16)]
    order = list(range(15, -1, -1))
    reversed_batch = sample(logits[order], [rows[i] for i in order])
    assert together == alone == reversed_batch[::-1]


def test_a_recomputed_attempt_continues_the_same_answer():
    """Tokens from position k on do not depend on whether those before k were sampled by this process."""
    logits = logits_of(12)
    penalties = {"presence_penalty": 0.4, "frequency_penalty": 0.3, "repetition_penalty": 1.1}

    def go_on(start: int, output: list[int]) -> list[int]:
        for step in range(start, 12):
            counts = Counter(output)
            one = sample(logits[step : step + 1], [row(50 + step, prompt=(4, 8), counts=counts, **penalties)])
            output.append(one[0].token)
        return output

    whole = go_on(0, [])
    assert go_on(7, whole[:7]) == whole


def test_sampling_leaves_the_logits_alone():
    logits = logits_of(2)
    before = logits.clone()
    sample(logits, [row(logit_bias=((3, 5.0),), presence_penalty=1.0, counts={3: 1}, top_k=4)] * 2)
    assert torch.equal(logits, before)


def reference_penalties(logits, prompt, output, *, bias=(), repetition=1.0, frequency=0.0, presence=0.0):
    result = [float(x) for x in logits]
    for token, value in bias:
        result[token] += value
    for token in {*prompt, *output}:
        result[token] = result[token] / repetition if result[token] > 0 else result[token] * repetition
    for token in set(output):
        result[token] -= output.count(token) * frequency + presence
    return torch.tensor(result)


@pytest.mark.parametrize(
    "penalties",
    [
        {"repetition": 1.7},
        {"frequency": 0.9},
        {"presence": 1.5},
        {"bias": ((3, 100.0), (90, -100.0))},
        {"repetition": 1.2, "frequency": -0.5, "presence": 0.7, "bias": ((2, 4.0), (2, 1.0))},
    ],
)
def test_penalties_equal_a_reference(penalties):
    logits = logits_of(1, seed=3)[0]
    prompt, output = (1, 2, 2, 40), [2, 7, 7, 7, 13]
    wanted = reference_penalties(logits, prompt, output, **penalties)
    params = {
        "logit_bias": penalties.get("bias", ()),
        "repetition_penalty": penalties.get("repetition", 1.0),
        "frequency_penalty": penalties.get("frequency", 0.0),
        "presence_penalty": penalties.get("presence", 0.0),
    }
    history = {"prompt": prompt, "counts": Counter(output)}
    seen = Counter(
        s.token for s in sample(logits.expand(3000, -1), [row(p, **history, **params) for p in range(3000)])
    )
    if penalties.get("bias", ((0, 0),))[0][1] == 100.0:
        assert set(seen) == {3}
    else:
        assert_drawn_from(seen, torch.softmax(wanted, -1), 3000)
    greedy = sample(logits[None], [row(temperature=0.0, **history, **params)])
    assert greedy[0].token == int(wanted.argmax())


def test_transformers_agrees_on_the_repetition_penalty():
    processors = pytest.importorskip("transformers.generation.logits_process")
    logits = logits_of(1, seed=5)
    prompt = [1, 2, 2, 40]
    theirs = processors.RepetitionPenaltyLogitsProcessor(1.7)(torch.tensor([prompt]), logits.clone())[0]
    ours = reference_penalties(logits[0], prompt, [], repetition=1.7)
    assert torch.allclose(theirs, ours)


def test_logprobs_are_the_raw_models():
    logits = logits_of(1, seed=9)
    raw = torch.log_softmax(logits, -1)[0]
    changed = row(temperature=0.5, top_k=3, presence_penalty=1.0, counts={4: 1}, logprobs=4)
    one = sample(logits, [changed])[0]
    assert one.logprobs.chosen == float(raw[one.token])
    top = raw.topk(4)
    assert one.logprobs.top == tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))


def test_logprobs_of_equal_tokens_come_in_the_order_that_greedy_uses():
    logits = torch.zeros(1, 50)
    one = sample(logits, [row(temperature=0.0, logprobs=3)])[0]
    assert [token for token, _ in one.logprobs.top] == [0, 1, 2]


def test_logprobs_zero_gives_the_chosen_alone_and_none_gives_none():
    logits = logits_of(1)
    assert sample(logits, [row(logprobs=0)])[0].logprobs.top == ()
    assert sample(logits, [row()])[0].logprobs is None
    assert len(sample(logits, [row(logprobs=10_000)])[0].logprobs.top) == VOCABULARY


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_without_a_finite_maximum_name_their_rows(bad):
    logits = logits_of(4)
    logits[1] = bad
    logits[3, 8] = math.nan
    with pytest.raises(BadLogitsError, match=r"\[1, 3\]") as caught:
        sample(logits, [row()] * 4)
    assert caught.value.rows == (1, 3)


def test_an_empty_batch_gives_nothing():
    assert sample(torch.empty(0, 5), []) == []


def test_an_all_greedy_batch_does_no_tensor_work_per_row(monkeypatch):
    monkeypatch.setattr("kvfence.engine.sampler._sample_one", None)
    logits = logits_of(3)
    wanted = [Sampled(int(token)) for token in logits.argmax(-1)]
    assert sample(logits, [row(temperature=0.0)] * 3) == wanted
