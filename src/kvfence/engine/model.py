"""A causal language model of transformers that keeps its keys and values in our pages.

Rules: a step writes only the slots that its chunks or rows name, and reads only their pages. With equal
shapes, a row's logits are bitwise the same whatever the other rows hold (law 12; dense models). The
model's own code is not touched: it runs with our attention function and without a cache of its own.

It does not schedule, sample or check ownership. One thread at a time: steps share scratch memory.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from kvfence.engine.attention import IMPLEMENTATION, AttentionStep
from kvfence.engine.attention_decode import DecodeRow, DecodeStep
from kvfence.engine.attention_pages import Scratch
from kvfence.engine.attention_prefill import PrefillChunk, PrefillStep
from kvfence.engine.pool_views import TORCH_DTYPES, PoolViews
from kvfence.engine.probe import LayerFacts, probe
from kvfence.engine.refusals import RefusedModelError, refuse_config, refusing
from kvfence.kv.layout import LayerShape, PageLayout
from kvfence.protocol.errors import invariant

__all__ = ["DecodeRow", "PagedModel", "PrefillChunk", "adopt", "set_threads"]


class PagedModel:
    """A probed model. `layers` are the shapes of what it keeps of a token; `facts` all that was probed.

    `revision` names the weights (a content hash; None for a module that was adopted without a folder).
    """

    def __init__(self, module: Any, facts: tuple[LayerFacts, ...], *, revision: str | None = None) -> None:
        text = module.config.get_text_config()
        self.module = module
        self.facts = facts
        self.revision = revision
        self.layers: tuple[LayerShape, ...] = tuple(fact.shape for fact in facts)
        self.vocab_size: int = int(text.vocab_size)
        self.eos_token_ids: tuple[int, ...] = _eos_token_ids(module)
        parameter = next(module.parameters())
        self.device: torch.device = parameter.device
        self.dtype: str = _dtype_name(parameter.dtype)
        self._keeps = "logits_to_keep" in inspect.signature(module.forward).parameters
        self._scratch = Scratch()

    def page_layout(self, page_tokens: int) -> PageLayout:
        """Return the layout of a page of `page_tokens` slots for this model."""
        return PageLayout(layers=self.layers, page_tokens=page_tokens, dtype=self.dtype)

    def prefill(self, views: PoolViews, chunks: Sequence[PrefillChunk]) -> torch.Tensor:
        """Compute the chunks' keys and values into their pages.

        Returns float32 logits [chunks that want them, vocab_size], in the order of `chunks`; the caller
        owns them. Several chunks of one prompt may not be in one call.
        """
        step = PrefillStep(views, chunks, self._scratch, self.device)
        return self._forward(step, step.tokens, step.positions, step.wanted)

    def decode(self, views: PoolViews, rows: Sequence[DecodeRow]) -> torch.Tensor:
        """Feed one token a row. Returns float32 logits [rows, vocab_size]; the caller owns them."""
        step = DecodeStep(views, rows, self._scratch, self.device)
        tokens = [row.token for row in rows]
        return self._forward(step, tokens, [row.position for row in rows], None)

    def _forward(
        self,
        step: AttentionStep,
        tokens: Sequence[int],
        positions: Sequence[int],
        wanted: Sequence[int] | None,
    ) -> torch.Tensor:
        keywords: dict[str, Any] = {}
        keep = None if wanted is None else torch.tensor(wanted, dtype=torch.int64, device=self.device)
        if keep is not None and self._keeps:
            keywords["logits_to_keep"] = keep
        with torch.inference_mode():
            logits = self.module(
                input_ids=torch.tensor([tokens], dtype=torch.int64, device=self.device),
                position_ids=torch.tensor([positions], dtype=torch.int64, device=self.device),
                use_cache=False,
                kv=step,
                **keywords,
            ).logits[0]
            if keep is not None and not self._keeps:
                logits = logits[keep]
        # Copied outside inference mode, so that the caller may change what it owns.
        return logits.to(torch.float32, copy=True)


def adopt(module: Any, *, revision: str | None = None) -> PagedModel:
    """Make a loaded transformers module paged: refuse what cannot run, set our attention, probe.

    Mutates the module's attention setting. Raises OperatorError (a RefusedModelError) with the reason.
    """
    refuse_config(module.config)
    module.eval()
    with refusing(module.config, "setting the attention function"):
        module.set_attn_implementation(IMPLEMENTATION)
    return PagedModel(module, probe(module), revision=revision)


def set_threads(count: int) -> None:
    """Give this process `count` threads for tensors. Call it before the first tensor is computed."""
    invariant(count >= 1, "a node computes with at least one thread")
    torch.set_num_threads(count)
    if torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)


def _eos_token_ids(module: Any) -> tuple[int, ...]:
    ids: list[int] = []
    for source in (getattr(module, "generation_config", None), module.config.get_text_config()):
        value = getattr(source, "eos_token_id", None)
        ids.extend(value if isinstance(value, list | tuple) else [] if value is None else [value])
    return tuple(dict.fromkeys(int(token) for token in ids))


def _dtype_name(dtype: torch.dtype) -> str:
    for name, candidate in TORCH_DTYPES.items():
        if candidate == dtype:
            return name
    raise RefusedModelError("a model", f"its weights are {dtype}, which a page cannot hold")
