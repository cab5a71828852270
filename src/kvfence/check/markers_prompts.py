"""The prompts in which markers stand, written for models that obey badly.

Rules they keep:
- No order is needed: each is a text whose likeliest continuation copies what stands in the context. A model
  of a hundred million parameters does that where it does not follow an instruction.
- `quote` shows its own marker and invites to repeat it: what comes back measures the detector.
- `bait` holds no marker. Over pages that are somebody else's, its continuation is somebody else's words.
"""

from dataclasses import dataclass

from kvfence.check.markers import WORDS, Marker

_HEAD = "The line below is written again and again, without any change."
# A word may take two tokens or three where a tokenizer does not hold it whole.
QUOTE_TOKENS = 3 * WORDS


@dataclass(frozen=True, slots=True)
class MarkerPrompts:
    """`plant` fills pages with a marker, `quote` makes the model repeat it, `bait` waits for another's."""

    plant: str
    quote: str
    bait: str


def prompts_for(marker: Marker, *, lines: int = 8) -> MarkerPrompts:
    """Prompts around one marker. `lines` is how often `plant` says it: about twenty tokens a line."""
    line = f"Line: {marker.text}\n"
    return MarkerPrompts(
        plant=f"{_HEAD}\n{line * lines}Line:", quote=f"{_HEAD}\n{line * 2}Line:", bait=f"{_HEAD}\nLine:"
    )
