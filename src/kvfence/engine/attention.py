"""The attention function that transformers calls in each layer, and the words that go through it.

Rules: one function is registered, under one name; the step it belongs to travels as the keyword `kv`
of the model's forward, and a model that drops keywords is refused, never guessed at. The name has no
mask function, so transformers builds no mask: causality, windows and lengths are the step's.

It does not attend: a step does (`attention_decode`, `attention_prefill`), or the recorder of the probe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import AttentionInterface

from kvfence.protocol.errors import OperatorError

IMPLEMENTATION = "kvfence"


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """What one layer asks for: query [1, heads, T, k_dim], key and value [1, kv_heads, T, dim].

    `other` holds the keywords that have no field of their own.
    """

    layer: int
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    scaling: float | None
    window: int | None
    softcap: float | None
    sinks: torch.Tensor | None
    causal: bool
    other: Mapping[str, Any]


class AttentionStep(Protocol):
    """One forward pass as its layers see it."""

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Return [1, T, heads, v_dim] for the query of one layer."""
        ...


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    kv: AttentionStep | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    is_causal: bool | None = None,
    **other: Any,
) -> tuple[torch.Tensor, None]:
    """Hand the layer's call to the step that `kv` names. The signature is transformers'."""
    if kv is None:
        raise OperatorError(
            "its layers drop the keyword arguments of the forward pass, so attention cannot be told which "
            "pages belong to which request"
        )
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    layer = getattr(module, "layer_idx", None)
    if layer is None:
        raise OperatorError("its attention modules have no layer number, so their pages cannot be told apart")
    call = AttentionCall(
        layer, query, key, value, attention_mask, scaling, sliding_window, softcap, s_aux, causal, other
    )
    return kv.attend(call), None


AttentionInterface.register(IMPLEMENTATION, attention)
