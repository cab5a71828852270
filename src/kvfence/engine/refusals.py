"""Models that cannot run right over pages, refused at load with the reason.

Rules: what is wrong is found from facts of the config and of the probe, not from a list of names, and
refused before a request can meet it. Any exception in the probe or the self-test is a refusal too.

Two kinds are here: those that a probe cannot see because each sequence alone is right (rope factors
chosen from the batch, masks that only transformers would build), and the words for all others.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kvfence.protocol.errors import OperatorError

PAGED_LAYER_TYPES = frozenset({"full_attention", "sliding_attention", "attention"})
DEPTH_MAX = 8


class RefusedModelError(OperatorError):
    """This model cannot be served. `reason` is a clause that follows "cannot be served: "."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(
            f"{model} cannot be served: {reason}. Choose a model whose layers all use ordinary causal "
            "attention (Llama, Qwen, Mistral, Gemma, Phi, GPT-2, Mixtral and their kin)."
        )
        self.model = model
        self.reason = reason


def refuse_config(config: Any) -> None:
    """Raise RefusedModelError where the config alone shows that paged, packed attention would be wrong."""
    facts = config.to_dict()
    name = model_name(config)
    for reason in _reasons(facts):
        raise RefusedModelError(name, reason)


def model_name(config: Any) -> str:
    """Name a model as its config does: the first architecture, else the model type."""
    architectures = getattr(config, "architectures", None) or ()
    return str(architectures[0]) if architectures else f"a model of type {config.model_type!r}"


@contextmanager
def refusing(config: Any, doing: str) -> Iterator[None]:
    """Turn whatever transformers or torch raises while `doing` into a RefusedModelError with its words."""
    name = model_name(config)
    try:
        yield
    except RefusedModelError:
        raise
    except OperatorError as error:
        raise RefusedModelError(name, str(error)) from error
    except Exception as error:
        raise RefusedModelError(
            name, f"{doing} failed with {type(error).__name__}: {_first_line(error)}"
        ) from error


def _reasons(facts: Mapping[str, Any]) -> Iterator[str]:
    for key, value in _walk(facts, DEPTH_MAX):
        if key in {"layer_types", "layers_block_type"} and isinstance(value, list | tuple):
            odd = sorted({str(kind) for kind in value} - PAGED_LAYER_TYPES)
            if odd:
                yield (
                    f"it has layers of type {', '.join(odd)}, whose state or mask is not keys and values "
                    "of every earlier token"
                )
        elif key in {"rope_type", "type"} and isinstance(value, str) and _batch_dependent_rope(value):
            yield (
                f"its rotary embedding is {value!r}, which picks its factors from the longest sequence in "
                "the batch, so that one request would change another's answer"
            )
        elif key == "use_bidirectional_attention" and value:
            yield "its attention is bidirectional, so a token's keys change with later tokens"
        elif key == "is_encoder_decoder" and value:
            yield "it is an encoder-decoder model, not a causal language model"


def _batch_dependent_rope(kind: str) -> bool:
    return kind == "longrope" or "dynamic" in kind


def _walk(facts: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        yield str(key), value
        if isinstance(value, Mapping) and depth > 0:
            yield from _walk(value, depth - 1)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"
