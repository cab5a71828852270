"""From a request's body to jobs: what the fake accepts, and how it says no."""

from tests.check.fake.jobs import Job, RefusedError
from tests.check.fake.vocabulary import ASSISTANT, SYSTEM, USER, pieces_of

CONTROL_FIELDS = ("kv_transfer_params", "bootstrap_host", "bootstrap_port", "bootstrap_room")
_ROLES = {"system": SYSTEM, "developer": SYSTEM, "user": USER, "assistant": ASSISTANT}


def chat_text(messages):
    """The chat template."""
    text = ""
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise RefusedError("body", "messages: each needs a role and a content")
        text += f"{_ROLES[message['role']]}\n{_content(message.get('content'))}\n"
    return text + ASSISTANT


def _content(content):
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def prompt_words(body, vocabulary, setup, *, is_chat):
    """The prompt in pieces."""
    if is_chat:
        if not body.get("messages"):
            raise RefusedError("body", "messages: a list of at least one is needed")
        return tuple(pieces_of(chat_text(body["messages"])))
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str) and prompt:
        return tuple(pieces_of(prompt))
    is_ids = isinstance(prompt, list) and prompt and all(isinstance(one, int) for one in prompt)
    if is_ids and setup.takes_token_ids:
        return tuple(vocabulary.piece_of(number) for number in prompt)
    raise RefusedError("body", "prompt: a text is needed")


def jobs_of(body, words, tenant, client_id, setup):
    """One job for each choice."""
    _check_fields(body, setup)
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise RefusedError("body", "max_tokens: a positive number is needed")
    transfer = body.get("kv_transfer_params") if setup.control_fields == "accept" else None
    handoff = transfer if transfer and transfer.get("do_remote_prefill") else None
    count = body.get("n") or 1
    return [
        Job(
            tenant=tenant,
            words=words,
            max_tokens=limit,
            model=body.get("model") or setup.model,
            seed=(body.get("seed") or 0) + choice,
            temperature=body.get("temperature", 1.0) or 0.0,
            client_id=None if client_id is None else f"{client_id}/{choice}",
            stop=_stops(body.get("stop")),
            runs_on=bool(body.get("ignore_eos")),
            wants_handoff=bool(transfer and transfer.get("do_remote_decode")),
            handoff=handoff,
        )
        for choice in range(count)
    ]


def _stops(stop):
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def _check_fields(body, setup):
    if setup.control_fields == "refuse":
        for name in CONTROL_FIELDS:
            if name in body:
                raise RefusedError("field", f"{name}: this field is not a client's to set")
    if not setup.takes_temperature and body.get("temperature", 1) != 1:
        raise RefusedError("field", "Unsupported value: 'temperature' does not support 0 with this model.")
    if setup.only_max_completion_tokens and "max_tokens" in body:
        raise RefusedError(
            "field",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        )
    if not setup.has_logprobs and body.get("logprobs"):
        raise RefusedError("field", "logprobs are not supported with this model")
    if body.get("cache_salt") == "":
        raise RefusedError("field", "cache_salt: must not be empty")
