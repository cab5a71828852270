"""OpenAI's objects: completions and chat completions, whole and in chunks.

Rules it keeps:
- One class a format, with the same methods, so that the API treats both alike.
- `usage` counts what was computed: a prompt once, however many choices it has; its cached tokens are those
  that no choice computed.
- Logprobs that are minus infinity are written as -9999, since JSON has no infinity.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kvfence.engine import TokenLogprobs
from kvfence.protocol.errors import unreachable
from kvfence.serving.detokenizer import SpokenToken
from kvfence.serving.jobs import EndDelta
from kvfence.serving.streaming import Event, Finished, Spoke
from kvfence.serving.tokenizer import TextTokenizer

LOGPROB_MIN = -9999.0
Json = dict[str, object]


@dataclass(slots=True)
class Collected:
    """One choice of an answer that is not streamed."""

    text: list[str] = field(default_factory=list)
    tokens: list[SpokenToken] = field(default_factory=list)
    finished: Finished | None = None

    def add(self, event: Event) -> None:
        """Take the choice's next event."""
        if isinstance(event, Finished):
            self.finished = event
        else:
            self.text.append(event.piece.text)
            self.tokens.extend(event.piece.tokens)


class Format(Protocol):
    """How one endpoint writes answers down."""

    def whole(self, choices: Sequence[Collected], usage: Json) -> Json:
        """Return the answer that is not streamed."""
        ...

    def opening(self, index: int) -> Json | None:
        """Return the chunk before a choice's first, if the format has one."""
        ...

    def spoke(self, event: Spoke) -> Json:
        """Return the chunk of a piece."""
        ...

    def finished(self, event: Finished) -> Json:
        """Return the last chunk of a choice."""
        ...

    def usage(self, usage: Json) -> Json:
        """Return the chunk that carries the usage."""
        ...


@dataclass(frozen=True, slots=True)
class Head:
    """What all chunks of an answer share."""

    answer_id: str
    created: int
    model: str
    tokenizer: TextTokenizer
    with_logprobs: bool
    with_usage: bool  # chunks of a stream that ends with usage say `usage: null` until then

    def object(self, kind: str, choices: Sequence[Json]) -> Json:
        """Return an answer or chunk around its choices."""
        found: Json = {
            "id": self.answer_id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": list(choices),
        }
        return found | {"usage": None} if self.with_usage else found


class CompletionFormat:
    """/v1/completions."""

    def __init__(self, head: Head) -> None:
        self._head = head

    def whole(self, choices: Sequence[Collected], usage: Json) -> Json:
        """See Format."""
        written = [
            self._choice(index, "".join(choice.text), choice.tokens, _finish_reason(choice))
            for index, choice in enumerate(choices)
        ]
        return self._head.object("text_completion", written) | {"usage": usage}

    def opening(self, index: int) -> Json | None:
        """See Format."""
        del index
        return None

    def spoke(self, event: Spoke) -> Json:
        """See Format."""
        return self._chunk(self._choice(event.index, event.piece.text, event.piece.tokens, None))

    def finished(self, event: Finished) -> Json:
        """See Format."""
        return self._chunk(self._choice(event.index, "", (), event.reason))

    def usage(self, usage: Json) -> Json:
        """See Format."""
        return self._head.object("text_completion", ()) | {"usage": usage}

    def _chunk(self, choice: Json) -> Json:
        return self._head.object("text_completion", (choice,))

    def _choice(self, index: int, text: str, tokens: Sequence[SpokenToken], reason: str | None) -> Json:
        logprobs = self._logprobs(tokens) if self._head.with_logprobs else None
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}

    def _logprobs(self, tokens: Sequence[SpokenToken]) -> Json:
        name = self._head.tokenizer.token_name
        found = [_logprobs_of(token) for token in tokens]
        return {
            "tokens": [name(token.token) for token in tokens],
            "token_logprobs": [_bounded(entry.chosen) for entry in found],
            "top_logprobs": [{name(token): _bounded(value) for token, value in entry.top} for entry in found],
            "text_offset": [token.start for token in tokens],
        }


class ChatFormat:
    """/v1/chat/completions."""

    def __init__(self, head: Head) -> None:
        self._head = head

    def whole(self, choices: Sequence[Collected], usage: Json) -> Json:
        """See Format."""
        written: list[Json] = [
            {
                "index": index,
                "message": {"role": "assistant", "content": "".join(choice.text), "refusal": None},
                "logprobs": self._logprobs(choice.tokens),
                "finish_reason": _finish_reason(choice),
            }
            for index, choice in enumerate(choices)
        ]
        return self._head.object("chat.completion", written) | {"usage": usage}

    def opening(self, index: int) -> Json | None:
        """See Format."""
        return self._chunk(index, {"role": "assistant", "content": ""}, (), None)

    def spoke(self, event: Spoke) -> Json:
        """See Format."""
        return self._chunk(event.index, {"content": event.piece.text}, event.piece.tokens, None)

    def finished(self, event: Finished) -> Json:
        """See Format."""
        return self._chunk(event.index, {}, (), event.reason)

    def usage(self, usage: Json) -> Json:
        """See Format."""
        return self._head.object("chat.completion.chunk", ()) | {"usage": usage}

    def _chunk(self, index: int, delta: Json, tokens: Sequence[SpokenToken], reason: str | None) -> Json:
        choice: Json = {
            "index": index,
            "delta": delta,
            "logprobs": self._logprobs(tokens) if tokens else None,
            "finish_reason": reason,
        }
        return self._head.object("chat.completion.chunk", (choice,))

    def _logprobs(self, tokens: Sequence[SpokenToken]) -> Json | None:
        if not self._head.with_logprobs:
            return None
        return {"content": [self._token(token) for token in tokens], "refusal": None}

    def _token(self, token: SpokenToken) -> Json:
        entry = _logprobs_of(token)
        top = [self._one(other, value) for other, value in entry.top]
        return self._one(token.token, entry.chosen) | {"top_logprobs": top}

    def _one(self, token: int, logprob: float) -> Json:
        tokenizer = self._head.tokenizer
        return {
            "token": tokenizer.token_name(token),
            "logprob": _bounded(logprob),
            "bytes": list(tokenizer.spelling(token)),
        }


def usage_of(ends: Mapping[int, EndDelta], choices_per_prompt: int) -> Json:
    """Return the usage of a request; `ends` by choice, the choices of a prompt one after another."""
    prompts: dict[int, list[EndDelta]] = defaultdict(list)
    for index, end in ends.items():
        prompts[index // choices_per_prompt].append(end)
    prompt_tokens = sum(max(end.prompt_tokens for end in group) for group in prompts.values())
    cached_tokens = sum(min(end.cached_tokens for end in group) for group in prompts.values())
    completion_tokens = sum(end.completion_tokens for end in ends.values())
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


def _finish_reason(choice: Collected) -> str:
    if choice.finished is None:
        unreachable("an answer is written down when all its choices are finished")
    return choice.finished.reason


def _logprobs_of(token: SpokenToken) -> TokenLogprobs:
    if token.logprobs is None:
        unreachable("a choice that asked for logprobs has them for each token")
    return token.logprobs


def _bounded(logprob: float) -> float:
    return max(logprob, LOGPROB_MIN)
