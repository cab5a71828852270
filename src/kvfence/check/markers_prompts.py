"""The prompts in which markers stand, written for models that obey badly.

Rules they keep:
- On the completions endpoint no order is needed: each text is likeliest continued by a copy of what
  it holds. A model of a hundred million parameters does that where it does not follow an instruction.
- `quote` shows its own marker and invites to repeat it: how often that works measures the detector, and over
  pages that are somebody else's it repeats somebody else's words.
- A bait holds no marker, and has nothing to say: what comes back comes from the context.
"""

from dataclasses import dataclass

from kvfence.check.asks import Endpoint
from kvfence.check.known import Known, Need
from kvfence.check.markers import WORDS, Marker

# A word may take two tokens where a tokenizer does not hold it whole; a chat model may begin with a phrase.
QUOTE_TOKENS = 3 * WORDS
QUOTE_LINES = 3
_CHAT_QUOTE_LINES = 5
PLANT_LINES = 8


@dataclass(frozen=True, slots=True)
class MarkerPrompts:
    """`plant` fills pages with a marker, `quote` makes the model repeat it at the least cost."""

    plant: str
    quote: str


def copying_endpoint(known: Known) -> Endpoint:
    """Where a marker is copied best: completions if the server has them, for they need no obedience."""
    return Endpoint.COMPLETIONS if Need.COMPLETIONS in known.has else Endpoint.CHAT


def prompts_for(
    marker: Marker, endpoint: Endpoint, *, lines: int = PLANT_LINES, lead: int = 0
) -> MarkerPrompts:
    """Prompts around one marker. `lines` is how often `plant` says it: about 17 tokens a line.

    `lead` of its last words stand before the first line of `plant`: so prompts of the same lines end at
    different places of a page.
    """
    line = f"{marker.text}\n"
    led = " ".join(marker.text.split()[-lead:]) + "\n" if lead else ""
    if endpoint is Endpoint.COMPLETIONS:
        return MarkerPrompts(plant=led + line * lines, quote=line * QUOTE_LINES)
    order = "Repeat exactly: "
    return MarkerPrompts(plant=order + led + line * lines, quote=order + line * _CHAT_QUOTE_LINES)


def bait_for(endpoint: Endpoint) -> str:
    """A prompt without a marker: over pages that are another's, it goes on with another's words."""
    return "Go on:\n" if endpoint is Endpoint.COMPLETIONS else "Go on."


def prompt_tokens_max(lines: int) -> int:
    """What a prompt of so many lines costs at most, with its template: for the plan, which mints nothing."""
    return (2 * WORDS + 2) * lines + 40
