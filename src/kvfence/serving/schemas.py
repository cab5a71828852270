"""Bodies of the two completion endpoints: the fields that are served, their ranges, their meaning.

Rules it keeps:
- A body becomes a frozen object whose every value is in range, or a 400 that names the field.
- `null` means that the field was not given, as in OpenAI's API.
- Seeds of the choices are derived here, so that choice i of a prompt is the same alone and among others.

Other fields are dealt with in `schemas_fields`. No text is tokenised here.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from kvfence.engine import SamplingParams
from kvfence.serving.chat import Message
from kvfence.serving.errors import bad_field
from kvfence.serving.schemas_fields import check_fields
from kvfence.serving.schemas_messages import read_message
from kvfence.serving.schemas_readers import (
    INT64_MAX,
    INT64_MIN,
    Fields,
    Reader,
    boolean,
    describe,
    integer,
    items,
    list_of,
    number,
    short_text,
    table,
    text,
)

CHOICES_MAX = 64
LOGIT_BIAS_MAX = 1024
MESSAGES_MAX = 4096
MODEL_CHARS_MAX = 256
PENALTY_MAX = 2.0
REPETITION_MAX = 10.0
STOPS_MAX = 4
STOP_CHARS_MAX = 256
STOP_TOKENS_MAX = 64
TEMPERATURE_MAX = 2.0
TOP_LOGPROBS_MAX = 20
TOKENS_MAX = (1 << 31) - 1

Prompt = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Common:
    """What both endpoints have."""

    model: str
    n: int
    max_tokens: int | None
    stops: tuple[str, ...]
    stream: bool
    include_usage: bool
    seed: int | None
    sampling: SamplingParams  # its seed is choice 0's; see `sampling_of`

    def sampling_of(self, choice: int, drawn_seed: int) -> SamplingParams:
        """Return the sampling of one choice of one prompt; `drawn_seed` counts where the client gave none."""
        base = drawn_seed if self.seed is None else self.seed
        return msgspec.structs.replace(self.sampling, seed=derive_seed(base, choice))


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """Body of /v1/completions."""

    common: Common
    prompts: tuple[Prompt, ...]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Body of /v1/chat/completions."""

    common: Common
    messages: tuple[Message, ...]


def derive_seed(base: int, choice: int) -> int:
    """Return the seed of a choice, 63 bits: the hash of the request's seed and the choice's number."""
    packed = base.to_bytes(9, "little", signed=True) + choice.to_bytes(4, "little")
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little") >> 1


_COMMON = (
    "model",
    "n",
    "max_tokens",
    "stop",
    "stop_token_ids",
    "stream",
    "stream_options",
    "seed",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "logprobs",
    "ignore_eos",
)
_COMPLETION = frozenset({*_COMMON, "prompt"})
_CHAT = frozenset({*_COMMON, "messages", "max_completion_tokens", "top_logprobs"})


def read_completion(body: Mapping[str, object], *, vocab_size: int) -> CompletionRequest:
    """Read the body of /v1/completions. Raises ApiError (400)."""
    check_fields(body, _COMPLETION)
    fields = Fields(body)
    logprobs = fields.get("logprobs", integer(0, TOP_LOGPROBS_MAX))
    common = _read_common(fields, fields.get("max_tokens", integer(1, TOKENS_MAX)), logprobs, vocab_size)
    prompts = fields.require("prompt", _prompt_reader(vocab_size))
    if len(prompts) * common.n > CHOICES_MAX:
        raise bad_field("n", f"times the number of prompts may be at most {CHOICES_MAX}")
    return CompletionRequest(common, prompts)


def read_chat(body: Mapping[str, object], *, vocab_size: int) -> ChatRequest:
    """Read the body of /v1/chat/completions. Raises ApiError (400)."""
    check_fields(body, _CHAT)
    fields = Fields(body)
    common = _read_common(fields, _chat_max_tokens(fields), _chat_logprobs(fields), vocab_size)
    messages = fields.require("messages", list_of(read_message, MESSAGES_MAX))
    if not messages:
        raise bad_field("messages", "must have at least one message")
    return ChatRequest(common, messages)


def _read_common(fields: Fields, max_tokens: int | None, logprobs: int | None, vocab_size: int) -> Common:
    stream = fields.get("stream", boolean) or False
    seed = fields.get("seed", integer(INT64_MIN, INT64_MAX))
    return Common(
        model=fields.require("model", short_text(MODEL_CHARS_MAX)),
        n=fields.get("n", integer(1, CHOICES_MAX)) or 1,
        max_tokens=max_tokens,
        stops=fields.get("stop", _stops) or (),
        stream=stream,
        include_usage=_include_usage(fields, stream=stream),
        seed=seed,
        sampling=_sampling(fields, logprobs, vocab_size),
    )


def _sampling(fields: Fields, logprobs: int | None, vocab_size: int) -> SamplingParams:
    penalty = number(-PENALTY_MAX, PENALTY_MAX)
    token = integer(0, vocab_size - 1)
    given: dict[str, object] = {
        "temperature": fields.get("temperature", number(0, TEMPERATURE_MAX)),
        "top_p": fields.get("top_p", number(0, 1, above=True)),
        "top_k": fields.get("top_k", integer(1, TOKENS_MAX)),
        "min_p": fields.get("min_p", number(0, 1)),
        "presence_penalty": fields.get("presence_penalty", penalty),
        "frequency_penalty": fields.get("frequency_penalty", penalty),
        "repetition_penalty": fields.get("repetition_penalty", number(0, REPETITION_MAX, above=True)),
        "logit_bias": fields.get("logit_bias", _logit_bias_reader(vocab_size)),
        "logprobs": logprobs,
        "stop_token_ids": fields.get("stop_token_ids", list_of(token, STOP_TOKENS_MAX)),
        "ignore_eos": fields.get("ignore_eos", boolean),
    }
    known = {name: value for name, value in given.items() if value is not None}
    return SamplingParams(seed=0, **known)  # type: ignore[arg-type]


def _chat_max_tokens(fields: Fields) -> int | None:
    old = fields.get("max_tokens", integer(1, TOKENS_MAX))
    new = fields.get("max_completion_tokens", integer(1, TOKENS_MAX))
    if old is not None and new is not None and old != new:
        raise bad_field("max_tokens", f"is {old} and `max_completion_tokens` is {new}; give one of them")
    return old if new is None else new


def _chat_logprobs(fields: Fields) -> int | None:
    wanted = fields.get("logprobs", boolean)
    top = fields.get("top_logprobs", integer(0, TOP_LOGPROBS_MAX))
    if wanted:
        return top or 0
    if top is not None:
        raise bad_field("top_logprobs", "needs `logprobs` to be true")
    return None


def _include_usage(fields: Fields, *, stream: bool) -> bool:
    options = fields.get("stream_options", lambda path, value: table(path, value, 8))
    if options is None:
        return False
    if not stream:
        raise bad_field("stream_options", "needs `stream` to be true")
    neutral = {name: value for name, value in options.items() if name != "include_obfuscation"}
    check_fields(neutral, {"include_usage"}, path="stream_options.")
    inner = Fields(options, "stream_options.")
    if inner.get("include_obfuscation", boolean):
        raise bad_field(
            "stream_options.include_obfuscation", "is not supported", code="unsupported_parameter"
        )
    return inner.get("include_usage", boolean) or False


def _stops(path: str, value: object) -> tuple[str, ...]:
    one = short_text(STOP_CHARS_MAX)
    return (one(path, value),) if isinstance(value, str) else list_of(one, STOPS_MAX)(path, value)


def _logit_bias_reader(vocab_size: int) -> Reader[tuple[tuple[int, float], ...]]:
    def read(path: str, value: object) -> tuple[tuple[int, float], ...]:
        biases = {}
        for key, bias in table(path, value, LOGIT_BIAS_MAX).items():
            if not (key.isascii() and key.isdecimal() and len(key) <= 10 and int(key) < vocab_size):
                shown = f"`{key}`" if key.isprintable() and len(key) <= 32 else describe(key)
                raise bad_field(path, f"has a key that is no token id from 0 to {vocab_size - 1}: {shown}")
            biases[int(key)] = number(-100, 100)(f"{path}.{key}", bias)
        return tuple(biases.items())

    return read


def _prompt_reader(vocab_size: int) -> Reader[tuple[Prompt, ...]]:
    token = integer(0, vocab_size - 1)

    def tokens(path: str, value: object) -> tuple[int, ...]:
        found = list_of(token, TOKENS_MAX)(path, value)
        if not found:
            raise bad_field(path, "may not be empty")
        return found

    def read(path: str, value: object) -> tuple[Prompt, ...]:
        if isinstance(value, str):
            return (_text_prompt(path, value),)
        listed = items(path, value, TOKENS_MAX)
        if not listed:
            raise bad_field(path, "may not be empty")
        if isinstance(listed[0], int):
            return (tokens(path, listed),)
        if not isinstance(listed[0], str | list):
            raise bad_field(
                f"{path}[0]",
                f"must be a string, a token id or a list of token ids, not {describe(listed[0])}",
            )
        if len(listed) > CHOICES_MAX:
            raise bad_field(path, f"may hold at most {CHOICES_MAX} prompts, not {len(listed)}")
        one: Callable[[str, object], Prompt] = _text_prompt if isinstance(listed[0], str) else tokens
        return list_of(one, CHOICES_MAX)(path, listed)

    return read


def _text_prompt(path: str, value: object) -> str:
    found = text(path, value)
    if not found:
        raise bad_field(path, "may not be empty")
    return found
