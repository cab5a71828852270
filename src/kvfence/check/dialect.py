"""How a server spells what is asked of it: field names, and the fields that it refuses.

Rules it keeps:
- A dialect is learned by the probe, before any scenario: from a 400 (or 422) that names a field, one lesson
  from each, and each lesson is recorded. A request of a scenario is never sent a second time in other words.
- Only fields without which a request still means the same may be left out; what a scenario needs (`stop`,
  `n`) is never dropped behind its back.
- A body holds what was asked for and nothing else: no defaults of ours that the user did not see.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.reply import Reply

MAX_TOKENS = "max_tokens"
MAX_COMPLETION_TOKENS = "max_completion_tokens"
OPTIONAL = ("temperature", "seed", "stream_options", "top_logprobs", "logprobs")
TOP_LOGPROBS = 5
LESSONS_MAX = 8
_WORDS_MAX = 160
_REFUSES = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra|not permitted|not allowed|instead|"
    r"not accept|only the default|must be|forbidden|invalid",
    re.IGNORECASE,
)
# A limit was passed: the field is understood, and what is wrong is its size.
_MEASURES = re.compile(r"too large|too long|at most|exceed|maximum context|context length", re.IGNORECASE)
_SYSTEM = re.compile(r"system\W+(?:role|message|prompt)|role\W+\w*\W*system", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What the probe learned of a server's spelling."""

    answer_limit: str = MAX_TOKENS
    left_out: frozenset[str] = frozenset()
    folds_system: bool = False  # no system role: its words stand at the head of the user's
    sends_done: bool = True  # streams end with [DONE]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A dialect that takes one more thing into account, and how that was learned."""

    dialect: Dialect
    how: str


def body_of(
    ask: Ask, endpoint: Endpoint, *, model: str | None, dialect: Dialect, extras: Mapping[str, object]
) -> dict[str, object]:
    """Return the body of a request in a server's dialect. The ask's own extras come last."""
    body: dict[str, object] = {} if model is None else {"model": model}
    body |= _prompt(ask, endpoint, dialect)
    limit = dialect.answer_limit if endpoint is Endpoint.CHAT else MAX_TOKENS
    optional: dict[str, object] = {
        limit: ask.max_tokens,
        "temperature": ask.temperature,
        "seed": ask.seed,
        "n": ask.n if ask.n > 1 else None,
        "stop": list(ask.stop) or None,
    }
    if ask.is_streaming:
        body["stream"] = True
        optional["stream_options"] = {"include_usage": True}
    if ask.wants_logprobs:
        optional |= _logprobs(endpoint)
    for name, value in optional.items():
        if value is not None and name not in dialect.left_out:
            body[name] = value
    if "logprobs" in dialect.left_out:
        body.pop("top_logprobs", None)  # it may not stand alone
    return body | dict(extras) | ask.extra_body


def _prompt(ask: Ask, endpoint: Endpoint, dialect: Dialect) -> dict[str, object]:
    if endpoint is Endpoint.COMPLETIONS:
        prompt = list(ask.prompt) if isinstance(ask.prompt, tuple) else ask.prompt
        return {"prompt": f"{ask.system}\n\n{prompt}" if ask.system else prompt}
    if ask.system is None:
        return {"messages": [{"role": "user", "content": ask.prompt}]}
    if dialect.folds_system:
        return {"messages": [{"role": "user", "content": f"{ask.system}\n\n{ask.prompt}"}]}
    return {"messages": [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.prompt}]}


def _logprobs(endpoint: Endpoint) -> dict[str, object]:
    if endpoint is Endpoint.CHAT:
        return {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    return {"logprobs": TOP_LOGPROBS}


def learn(dialect: Dialect, reply: Reply, sent: Mapping[str, object]) -> Lesson | None:
    """Return what a refusal teaches, or None where it is about something else. `sent` is the refused body."""
    if reply.status not in (400, 422):
        return None
    said = " ".join((reply.message or "").split())
    named = _named(reply, said, sent)
    words = f"the server said: {said[:_WORDS_MAX]}"
    if named in (MAX_TOKENS, MAX_COMPLETION_TOKENS):
        other = MAX_TOKENS if named == MAX_COMPLETION_TOKENS else MAX_COMPLETION_TOKENS
        return Lesson(replace(dialect, answer_limit=other), f"`{other}` in place of `{named}`; {words}")
    if named is not None:
        return Lesson(replace(dialect, left_out=dialect.left_out | {named}), f"without `{named}`; {words}")
    if not dialect.folds_system and _has_system(sent) and _SYSTEM.search(said) and _REFUSES.search(said):
        return Lesson(replace(dialect, folds_system=True), f"without the system role; {words}")
    return None


def _named(reply: Reply, said: str, sent: Mapping[str, object]) -> str | None:
    """Return the field that was sent and is refused as such."""
    if _MEASURES.search(said):
        return None
    candidates = [name for name in (MAX_TOKENS, MAX_COMPLETION_TOKENS, *OPTIONAL) if name in sent]
    param = (reply.error_param or "").split(".")[0]
    if param in candidates:
        return param
    if not _REFUSES.search(said):
        return None
    for name in candidates:
        if re.search(rf"(?<![A-Za-z_]){name}(?![A-Za-z_])", said):
            return name
    return None


def _has_system(sent: Mapping[str, object]) -> bool:
    messages = sent.get("messages")
    return isinstance(messages, list) and any(message.get("role") == "system" for message in messages)
