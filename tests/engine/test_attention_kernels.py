"""Every way to attend gives what the textbook formula gives."""

import pytest
import torch

from kvfence.engine.attention_kernels import Rules, attend_causal, attend_dense, attend_split, can_split

RULES = Rules(scaling=0.3, softcap=None, sinks=None)


def textbook(query, key, value, bias, rules):
    """One query head at a time, in float64."""
    groups = query.shape[2] // key.shape[2]
    out = torch.zeros(*query.shape[:3], value.shape[-1], dtype=torch.float64)
    for n in range(query.shape[0]):
        for head in range(query.shape[2]):
            k, v = key[n, :, head // groups].double(), value[n, :, head // groups].double()
            scores = query[n, :, head].double() @ k.T * rules.scaling
            if rules.softcap is not None:
                scores = torch.tanh(scores / rules.softcap) * rules.softcap
            if bias is not None:
                scores = scores + bias[n if len(bias) > 1 else 0, 0].double()
            weights = scores.exp()
            total = weights.sum(-1, keepdim=True)
            if rules.sinks is not None:
                total = total + rules.sinks[head].double().exp()
            out[n, :, head] = weights / total @ v
    return out


def numbers(rows, queries, keys, *, heads=6, kv_heads=2, dim=8, v_dim=8):
    source = torch.Generator().manual_seed(queries)
    draw = lambda *shape: torch.randn(*shape, generator=source)  # noqa: E731
    return draw(rows, queries, heads, dim), draw(rows, keys, kv_heads, dim), draw(rows, keys, kv_heads, v_dim)


def causal_bias(queries, keys):
    return torch.full((queries, keys), -torch.inf).triu_(keys - queries + 1)[None, None]


KINDS = [
    RULES,
    Rules(0.3, 2.0, None),
    Rules(0.3, None, torch.linspace(-1, 1, 6)),
    Rules(0.3, 2.0, torch.ones(6)),
]


@pytest.mark.parametrize("rules", KINDS, ids=["plain", "softcap", "sinks", "both"])
@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("v_dim", [8, 12])
def test_dense_with_and_without_a_mask(rules, queries, v_dim):
    query, key, value = numbers(3, queries, 9, v_dim=v_dim)
    for bias in (None, causal_bias(queries, 9), causal_bias(queries, 9).repeat(3, 1, 1, 1)):
        got = attend_dense(query, key, value, bias, rules)
        torch.testing.assert_close(
            got.double(), textbook(query, key, value, bias, rules), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("rules", KINDS, ids=["plain", "softcap", "sinks", "both"])
@pytest.mark.parametrize("queries", [1, 5])
def test_causal(rules, queries):
    query, key, value = numbers(2, queries, queries)
    expected = textbook(query, key, value, causal_bias(queries, queries), rules)
    torch.testing.assert_close(
        attend_causal(query, key, value, rules).double(), expected, rtol=1e-5, atol=1e-5
    )


def test_past_and_present_apart_equal_both_at_once():
    query, key, value = numbers(2, 40, 100)
    got = attend_split(query, (key[:, :60], value[:, :60]), (key[:, 60:], value[:, 60:]), RULES)
    expected = textbook(query, key, value, causal_bias(40, 100), RULES)
    torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-5)


def test_a_merge_stays_finite_when_one_side_dwarfs_the_other():
    query, key, value = numbers(1, 4, 8)
    got = attend_split(query, (key[:, :4] * 1e3, value[:, :4]), (key[:, 4:], value[:, 4:]), RULES)
    assert torch.isfinite(got).all()


def test_splitting_is_for_plain_rules_and_equal_dims():
    query, _, value = numbers(1, 4, 8)
    wide = numbers(1, 4, 8, v_dim=12)[2]
    assert can_split(query, value, RULES)
    assert not can_split(query, value, KINDS[1])
    assert not can_split(query, wide, RULES)
