"""Attention over dense keys and values, however they were gathered.

Rules: results depend on a sequence's own numbers and on shapes, never on other sequences' numbers
(law 12). Grouped-query heads are not repeated in memory where the kernel can share them.

It knows no pages. Masks are additive: 0 to attend, -inf not to.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import scaled_dot_product_attention

from kvfence.engine.attention import AttentionCall

flash_cpu = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001 (it alone returns log-sum-exp)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a layer does to its scores."""

    scaling: float
    softcap: float | None
    sinks: torch.Tensor | None

    @classmethod
    def of(cls, call: AttentionCall) -> "Rules":
        """Read the rules from a layer's call; without a scaling it is 1 / sqrt(k_dim), as everywhere."""
        scaling = call.query.shape[-1] ** -0.5 if call.scaling is None else call.scaling
        return cls(scaling=scaling, softcap=call.softcap, sinks=call.sinks)

    @property
    def plain(self) -> bool:
        """True when a fused kernel can do it all."""
        return self.softcap is None and self.sinks is None


def attend_dense(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None, rules: Rules
) -> torch.Tensor:
    """Attend from `query` [n, q, heads, k_dim] to `key` [n, l, kv_heads, k_dim] → [n, q, heads, v_dim].

    `bias` is [n or 1, 1, q, l] in the query's dtype, or None to attend to everything.
    """
    if not rules.plain:
        return _attend_by_hand(query, key, value, bias, rules)
    if query.shape[1] == 1:
        return _attend_one_query(query, key, value, bias, rules)
    out = scaled_dot_product_attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        attn_mask=bias,
        scale=rules.scaling,
        enable_gqa=query.shape[2] != key.shape[2],
    )
    return out.transpose(1, 2)


def attend_causal(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rules: Rules) -> torch.Tensor:
    """As `attend_dense` for sequences that start here: token i attends to tokens 0 to i."""
    length = query.shape[1]
    if not rules.plain:
        bias = torch.full((length, length), -torch.inf, dtype=query.dtype, device=query.device).triu_(1)
        return _attend_by_hand(query, key, value, bias[None, None], rules)
    out = scaled_dot_product_attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        is_causal=length > 1,
        scale=rules.scaling,
        enable_gqa=query.shape[2] != key.shape[2],
    )
    return out.transpose(1, 2)


def can_split(query: torch.Tensor, value: torch.Tensor, rules: Rules) -> bool:
    """Say whether `attend_split` can stand in for a masked pass here."""
    return rules.plain and query.device.type == "cpu" and query.shape[-1] == value.shape[-1]


def attend_split(
    query: torch.Tensor,
    past: tuple[torch.Tensor, torch.Tensor],
    present: tuple[torch.Tensor, torch.Tensor],
    rules: Rules,
) -> torch.Tensor:
    """Attend to the past (all of it) and to the present (causally) apart, and merge by log-sum-exp.

    A masked pass cannot skip the causal half of the present; this one can. Shapes as in `attend_dense`;
    each pair is keys and values. Source: the merge of FlashAttention's blocks.
    """
    old, old_lse = _flash(query, *past, rules, causal=False)
    new, new_lse = _flash(query, *present, rules, causal=True)
    old_share = torch.sigmoid(old_lse - new_lse).unsqueeze(-1).to(new.dtype)
    return torch.lerp(new, old, old_share).transpose(1, 2)


def _flash(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rules: Rules, *, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output [n, heads, q, v_dim] and the log-sum-exp of the scores [n, heads, q]."""
    out, lse = flash_cpu(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        dropout_p=0.0,
        is_causal=causal,
        scale=rules.scaling,
    )
    return out, lse


def _attend_one_query(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None, rules: Rules
) -> torch.Tensor:
    """Let the heads that share a KV head be the kernel's query rows, so that keys are read once a group."""
    rows, _, heads, dim = query.shape
    kv_heads = key.shape[2]
    out = scaled_dot_product_attention(
        query.reshape(rows, kv_heads, heads // kv_heads, dim),
        key.transpose(1, 2),
        value.transpose(1, 2),
        attn_mask=bias,
        scale=rules.scaling,
    )
    return out.reshape(rows, 1, heads, value.shape[-1])


def _attend_by_hand(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None, rules: Rules
) -> torch.Tensor:
    """Soft-capped scores and attention sinks, in the order and precision of transformers' eager functions."""
    rows, length, heads, dim = query.shape
    kv_heads = key.shape[2]
    grouped = query.transpose(1, 2).reshape(rows, kv_heads, heads // kv_heads, length, dim)
    scores = torch.matmul(grouped, key.permute(0, 2, 3, 1).unsqueeze(2)) * rules.scaling
    scores = scores.reshape(rows, heads, length, key.shape[1])
    if rules.softcap is not None:
        scores = torch.tanh(scores / rules.softcap) * rules.softcap
    if bias is not None:
        scores = scores + bias
    if rules.sinks is not None:
        sinks = rules.sinks.to(scores.dtype).view(1, heads, 1, 1).expand(rows, heads, length, 1)
        scores = torch.cat((scores, sinks), dim=-1)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)[..., : key.shape[1]].to(query.dtype)
    weights = weights.view(rows, kv_heads, heads // kv_heads, length, key.shape[1])
    out = torch.matmul(weights, value.transpose(1, 2).unsqueeze(2))
    return out.reshape(rows, heads, length, value.shape[-1]).transpose(1, 2)
