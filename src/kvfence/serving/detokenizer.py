"""From tokens to text as they arrive: whole characters only, and nothing past a stop string.

Rules it keeps:
- Bytes wait until they are a whole character. Bytes that can never be one become U+FFFD, as in a decode
  of the whole; a character still unfinished when the answer ends is left out.
- Text waits while it may be the beginning of a stop string. What was returned is never taken back.
- Where a stop string is found depends on the text alone, not on how tokens cut it: the first to be
  complete counts, and of several that end together the longest.
- A token is reported once the text before its end is; offsets count characters of the returned text.

It knows no API format (`streaming`).
"""

import codecs
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvfence.engine import TokenLogprobs
from kvfence.serving.tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class SpokenToken:
    """A token that is part of the returned text, from character `start` to `end` of it."""

    token: int
    start: int
    end: int
    logprobs: TokenLogprobs | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What one step adds to the answer. `stopped`: a stop string was found; nothing follows."""

    text: str = ""
    tokens: tuple[SpokenToken, ...] = ()
    stopped: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything to send."""
        return bool(self.text or self.tokens or self.stopped)


class StopFinder:
    """Finds stop strings in text that arrives in pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        """`stops` are not empty strings."""
        self._stops = tuple(stops)
        self._held = ""

    def feed(self, text: str) -> tuple[str, bool]:
        """Return the text that is safe to send, and whether a stop string was found (then it is the last)."""
        if not self._stops:
            return text, False
        buffer = self._held + text
        found = [(at + len(stop), at) for stop in self._stops if (at := buffer.find(stop)) >= 0]
        if found:
            self._held = ""
            return buffer[: min(found)[1]], True
        keep = self._held_length(buffer)
        self._held = buffer[len(buffer) - keep :]
        return buffer[: len(buffer) - keep], False

    def flush(self) -> str:
        """Return what was held back: the answer is over, so it is no stop string."""
        held, self._held = self._held, ""
        return held

    def _held_length(self, buffer: str) -> int:
        """Return the length of the longest end of `buffer` that begins a stop string."""
        longest = max(len(stop) for stop in self._stops) - 1
        for length in range(min(longest, len(buffer)), 0, -1):
            end = buffer[len(buffer) - length :]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0


class Detokenizer:
    """The text of one choice. Feed it tokens in order, then finish it; after a stop feed no more."""

    def __init__(self, tokenizer: TextTokenizer, stops: Sequence[str] = ()) -> None:
        """`stops` are the request's stop strings."""
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._finder = StopFinder(stops)
        self._waiting: deque[SpokenToken] = deque()
        self._decoded = 0  # characters that the decoder gave, returned or held
        self._returned = 0
        self.stopped = False

    def feed(self, token: int, logprobs: TokenLogprobs | None = None) -> Piece:
        """Take one token; return what can be sent now."""
        raw = self._tokenizer.token_bytes(token)
        text = self._decoder.decode(raw)
        start, self._decoded = self._decoded, self._decoded + len(text)
        if raw:
            self._waiting.append(SpokenToken(token, start, self._decoded, logprobs))
        safe, self.stopped = self._finder.feed(text)
        self._returned += len(safe)
        returned = self._returned
        if self.stopped:
            # A token that the stop string cuts in two was still spoken in part.
            return Piece(safe, self._take(lambda token: token.start < returned), stopped=True)
        return Piece(safe, self._take(lambda token: token.end <= returned))

    def finish(self) -> Piece:
        """Return what was held back for a stop string that did not come."""
        text = self._finder.flush()
        self._returned += len(text)
        return Piece(text, self._take(lambda _: True))

    def _take(self, is_spoken: Callable[[SpokenToken], bool]) -> tuple[SpokenToken, ...]:
        spoken = []
        while self._waiting and is_spoken(self._waiting[0]):
            spoken.append(self._waiting.popleft())
        return tuple(spoken)
