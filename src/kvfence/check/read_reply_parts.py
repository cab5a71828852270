"""The members of an answer's JSON, in all the forms that servers give them.

Rules it keeps:
- Nothing is guessed: a member of another type than it should have is as if it were not there.
- Whatever holds text is read: content, reasoning, tool arguments, refusals, the tokens of logprobs.

One function a member. What they are put together to is `read_reply`'s.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from kvfence.check.reply import Usage

Json = Mapping[str, object]
LOGPROB_MIN = -9999.0
# Finish reasons that are no end of an answer: the engine gave up and says so here alone.
BROKEN_FINISHES = frozenset({"abort", "aborted", "cancelled", "canceled", "error"})
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cache_read_input_tokens",),
    ("num_cached_tokens",),
    ("cached_tokens",),
)

Top = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSaid:
    """What a server says of a failure, in its own words."""

    message: str
    code: str | None = None
    param: str | None = None


def as_object(value: object) -> Json:
    """Return a JSON object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return a JSON array, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_count(value: object) -> int | None:
    """Return a count, or None for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def as_text(value: object) -> str | None:
    """Return a text that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def texts_of(choice: Json) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of everything that a choice, or its delta, says."""
    plain = as_text(choice.get("text"))
    if plain is not None:
        yield "content", plain
    for member in ("message", "delta"):
        yield from _message_texts(as_object(choice.get(member)))
    for member in _REASONING:
        found = as_text(choice.get(member))
        if found is not None:
            yield "reasoning", found


def _message_texts(message: Json) -> Iterator[tuple[str, str]]:
    content = message.get("content")
    if isinstance(content, str):
        if content:
            yield "content", content
    else:
        yield from _parts(content)
    for member in _REASONING:
        thought = message.get(member)
        found = as_text(thought) or as_text(as_object(thought).get("content"))
        if found is not None:
            yield "reasoning", found
    for detail in as_list(message.get("reasoning_details")):
        found = as_text(as_object(detail).get("text")) or as_text(as_object(detail).get("summary"))
        if found is not None:
            yield "reasoning", found
    refusal = as_text(message.get("refusal"))
    if refusal is not None:
        yield "error", refusal
    calls = [as_object(as_object(call).get("function")) for call in as_list(message.get("tool_calls"))]
    for function in (*calls, as_object(message.get("function_call"))):
        yield from _call_texts(function)


def _parts(content: object) -> Iterator[tuple[str, str]]:
    for part in as_list(content):
        said = as_object(part)
        found = as_text(part) or as_text(said.get("text")) or as_text(said.get("thinking"))
        if found is not None:
            yield "reasoning" if said.get("type") in ("thinking", "reasoning") else "content", found


def _call_texts(function: Json) -> Iterator[tuple[str, str]]:
    name = as_text(function.get("name"))
    if name is not None:
        yield "tool", name
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        yield "tool", msgspec.json.encode(arguments).decode()
    elif as_text(arguments) is not None:
        yield "tool", str(arguments)


def finish_of(choice: Json) -> tuple[str | None, str | None]:
    """Return (finish reason, what it says of a failure). SGLang's is an object with a type and a message."""
    reason = choice.get("finish_reason")
    if isinstance(reason, dict):
        return as_text(reason.get("type")), as_text(reason.get("message"))
    return as_text(reason), None


def logprobs_of(choice: Json) -> tuple[list[str], list[Top]]:
    """Return the tokens that a choice's logprobs name, and the alternatives of each position."""
    said = as_object(choice.get("logprobs"))
    tokens: list[str] = []
    tops: list[Top] = []
    for entry in (*as_list(said.get("content")), *as_list(said.get("refusal"))):
        one = as_object(entry)
        tokens.append(as_text(one.get("token")) or "")
        listed = [as_object(top) for top in as_list(one.get("top_logprobs"))] or [one]
        tops.append(tuple((as_text(top.get("token")) or "", _logprob(top.get("logprob"))) for top in listed))
    own = [as_text(token) or "" for token in as_list(said.get("tokens"))]
    tokens += own
    tops += list(_old_tops(own, said))
    for position in as_list(choice.get("prompt_logprobs")):
        listed = [as_object(token) for token in as_object(position).values()]
        tokens += [as_text(token.get("decoded_token")) or "" for token in listed]
    return tokens, tops


def _old_tops(tokens: list[str], said: Json) -> Iterator[Top]:
    listed = as_list(said.get("top_logprobs"))
    chosen = as_list(said.get("token_logprobs"))
    for position, token in enumerate(tokens):
        top = as_object(listed[position]) if position < len(listed) else {}
        if top:
            yield tuple((name, _logprob(value)) for name, value in top.items())
        else:
            yield ((token, _logprob(chosen[position] if position < len(chosen) else None)),)


def _logprob(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return max(float(value), LOGPROB_MIN) if is_number else LOGPROB_MIN  # type: ignore[arg-type]


def usage_of(answer: Json, before: Usage) -> Usage:
    """Return the counts that an answer or chunk gives; those that it leaves out stay as they were."""
    said = as_object(answer.get("usage")) or as_object(as_object(answer.get("x_groq")).get("usage"))
    cached = _cached(said)
    if cached is None:
        cached = as_count(as_object(answer.get("timings")).get("cache_n"))  # llama.cpp
    return Usage(
        prompt_tokens=_first(said, "prompt_tokens", "input_tokens", otherwise=before.prompt_tokens),
        completion_tokens=_first(
            said, "completion_tokens", "output_tokens", otherwise=before.completion_tokens
        ),
        cached_tokens=before.cached_tokens if cached is None else cached,
    )


def _first(said: Json, *names: str, otherwise: int | None) -> int | None:
    for name in names:
        found = as_count(said.get(name))
        if found is not None:
            return found
    return otherwise


def _cached(said: Json) -> int | None:
    for path in _CACHED:
        value: object = said
        for name in path:
            value = as_object(value).get(name)
        found = as_count(value)
        if found is not None:
            return found
    return None


def error_of(answer: Json) -> ErrorSaid | None:
    """Return what an answer says of a failure, in the forms of OpenAI, vLLM, SGLang, FastAPI and gateways."""
    error = answer.get("error")
    if isinstance(error, str) and error:
        return ErrorSaid(message=as_text(answer.get("message")) or error, code=_code(answer))
    if isinstance(error, dict):
        return _error_object(error)
    if answer.get("object") == "error" or ("choices" not in answer and as_text(answer.get("message"))):
        return _error_object(answer)
    if "choices" not in answer and answer.get("detail"):
        return _detail(answer["detail"])
    for listed in as_list(answer.get("errors")):
        return _error_object(as_object(listed))
    return None


def _error_object(error: Json) -> ErrorSaid:
    message = as_text(error.get("message")) or as_text(error.get("msg")) or "an error without words"
    return ErrorSaid(message=message, code=_code(error), param=as_text(error.get("param")))


def _code(error: Json) -> str | None:
    for name in ("code", "type", "status"):
        value = error.get(name)
        if isinstance(value, int | str) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _detail(detail: object) -> ErrorSaid:
    """FastAPI's: a sentence, an error object, or a list of fields with what is wrong with each."""
    if isinstance(detail, str):
        return ErrorSaid(message=detail)
    if isinstance(detail, dict):
        return error_of(detail) or _error_object(detail)
    for listed in as_list(detail):
        one = as_object(listed)
        where = [str(step) for step in as_list(one.get("loc")) if step != "body"]
        message = f"{'.'.join(where)}: {as_text(one.get('msg')) or 'not accepted'}"
        return ErrorSaid(message=message, code=as_text(one.get("type")), param=where[0] if where else None)
    return ErrorSaid(message="an error without words")
