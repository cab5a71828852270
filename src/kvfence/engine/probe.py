"""What a model's layers ask of attention, found by one dummy forward pass with a recorder in its place.

Rules: the page layout comes from these facts, never from names in a config. A fact that our attention
does not reproduce is a refusal: a layer that is not called or called twice, a mask
or a keyword that we do not know.

It does not look at numbers; the self-test does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kvfence.engine.attention import AttentionCall
from kvfence.engine.refusals import refusing
from kvfence.kv.layout import LayerShape
from kvfence.protocol.errors import OperatorError

# Keywords that layers hand on and that change nothing for a causal model in inference.
INERT_KEYWORDS = frozenset(
    {
        "dropout",
        "position_ids",
        "position_embeddings",
        "use_cache",
        "cache",
        "past_key_values",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "return_dict",
        "num_items_in_batch",
    }
)
PROBE_TOKENS = 3


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """One layer as attention sees it. `window` counts the token itself; None is no window."""

    query_heads: int
    kv_heads: int
    k_dim: int
    v_dim: int
    window: int | None
    softcap: float | None
    sinks: bool
    scaling: float | None

    @property
    def shape(self) -> LayerShape:
        """What this layer keeps of a token."""
        return LayerShape(self.kv_heads, self.k_dim, self.v_dim)


class Recorder:
    """Stands in for attention: notes what each layer asks for and answers zeros of the right shape."""

    def __init__(self) -> None:
        self.seen: dict[int, LayerFacts] = {}

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Note the call; raise OperatorError where it asks for what we do not do."""
        if call.layer in self.seen:
            raise OperatorError(f"layer {call.layer} calls attention twice in one pass")
        self._check_words(call)
        self.seen[call.layer] = _facts(call)
        tokens, heads = call.query.shape[2], call.query.shape[1]
        return call.query.new_zeros(1, tokens, heads, call.value.shape[-1])

    @staticmethod
    def _check_words(call: AttentionCall) -> None:
        if call.mask is not None:
            raise OperatorError("it builds an attention mask of its own, which a packed batch cannot honour")
        if not call.causal:
            raise OperatorError("its attention is bidirectional, so a token's keys change with later tokens")
        unknown = sorted(
            name for name, value in call.other.items() if name not in INERT_KEYWORDS and _matters(value)
        )
        if unknown:
            raise OperatorError(
                f"it hands {', '.join(unknown)} to its attention, which paged attention does not know"
            )


def probe(module: Any) -> tuple[LayerFacts, ...]:
    """Return the facts of each layer of a causal language model that uses our attention function.

    Raises OperatorError (a RefusedModelError) with the reason where the model cannot be served.
    """
    recorder = Recorder()
    device = next(module.parameters()).device
    tokens = torch.zeros(1, PROBE_TOKENS, dtype=torch.int64, device=device)
    positions = torch.arange(PROBE_TOKENS, device=device)[None]
    with refusing(module.config, "a first pass"):
        with torch.inference_mode():
            module(input_ids=tokens, position_ids=positions, use_cache=False, kv=recorder)
        _check_layers(sorted(recorder.seen), _layer_count(module.config))
    return tuple(recorder.seen[layer] for layer in sorted(recorder.seen))


def _check_layers(seen: Sequence[int], count: int | None) -> None:
    if not seen:
        raise OperatorError(
            "no layer called the attention function that was set, so it has attention code of its own or none"
        )
    expected = len(seen) if count is None else count
    missing = sorted(set(range(expected)) - set(seen))
    if missing or len(seen) != expected:
        raise OperatorError(
            f"{len(seen)} of {expected} layers use attention; the others keep a state that pages do not hold"
        )


def _layer_count(config: Any) -> int | None:
    text = config.get_text_config()
    count = getattr(text, "num_hidden_layers", None)
    return None if count is None else int(count)


def _facts(call: AttentionCall) -> LayerFacts:
    if call.query.shape[0] != 1 or call.key.shape[2] != call.query.shape[2]:
        raise OperatorError("its attention does not take one key for each token of the batch")
    if call.query.shape[1] % call.key.shape[1]:
        raise OperatorError("its query heads are no multiple of its key and value heads")
    if call.value.shape[1] != call.key.shape[1] or call.query.shape[-1] != call.key.shape[-1]:
        raise OperatorError("its keys, values and queries do not fit one another in the usual way")
    return LayerFacts(
        query_heads=call.query.shape[1],
        kv_heads=call.key.shape[1],
        k_dim=call.key.shape[-1],
        v_dim=call.value.shape[-1],
        window=call.window,
        softcap=call.softcap,
        sinks=call.sinks is not None,
        scaling=None if call.scaling is None else float(call.scaling),
    )


def _matters(value: object) -> bool:
    """Say whether a keyword's value could change anything: None, False and 0 do not."""
    return isinstance(value, torch.Tensor) or bool(value)
