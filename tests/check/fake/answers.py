"""From rows to answers in OpenAI's format: whole, or as server-sent events."""

import json

OBJECTS = {True: "chat.completion", False: "text_completion"}


def usage_of(rows, rules, setup):
    """The token counts of a request's choices."""
    prompt, made = rows[0].prompt_tokens, sum(len(row.made) for row in rows)
    usage = {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}
    if setup.prefix_cache and setup.shows_cached:
        cached = rows[0].cached_tokens if rules.says_cached() else 0
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return usage


def chat_logprobs(pieces, count):
    """Logprobs in the form of chat."""
    return {
        "content": [
            {
                "token": piece.word,
                "logprob": piece.top[0][1] if piece.top else 0.0,
                "bytes": list(piece.word.encode()),
                "top_logprobs": [
                    {"token": word, "logprob": value, "bytes": list(word.encode())}
                    for word, value in piece.top[:count]
                ],
            }
            for piece in pieces
        ]
    }


def text_logprobs(pieces, count):
    """Logprobs in the form of completions."""
    return {
        "tokens": [piece.word for piece in pieces],
        "token_logprobs": [piece.top[0][1] if piece.top else 0.0 for piece in pieces],
        "top_logprobs": [dict(piece.top[:count]) for piece in pieces],
        "text_offset": [],
    }


def logprobs_of(body, pieces, *, is_chat):
    """What was asked for, or None."""
    if not body.get("logprobs"):
        return None
    if is_chat:
        return chat_logprobs(pieces, body.get("top_logprobs") or 0)
    return text_logprobs(pieces, int(body["logprobs"]))


def whole(head, body, choices, usage, *, is_chat):
    """A `chat.completion` or `text_completion`. `choices` are (pieces, finish reason)."""
    made = []
    for index, (pieces, finish) in enumerate(choices):
        text = "".join(piece.word for piece in pieces)
        choice = {"index": index, "finish_reason": finish}
        choice |= {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        choice["logprobs"] = logprobs_of(body, pieces, is_chat=is_chat)
        made.append(choice)
    data = {**head, "object": OBJECTS[is_chat], "choices": made}
    return data if usage is None else {**data, "usage": usage}


def chunk(head, body, index, pieces, finish, *, is_chat, is_first):
    """One event of a stream."""
    text = "".join(piece.word for piece in pieces)
    choice = {"index": index, "finish_reason": finish}
    if is_chat:
        delta = {"role": "assistant"} if is_first else {}
        choice["delta"] = {**delta, "content": text} if text or is_first else {}
    else:
        choice["text"] = text
    choice["logprobs"] = logprobs_of(body, pieces, is_chat=is_chat) if pieces else None
    return {**head, "object": OBJECTS[is_chat] + (".chunk" if is_chat else ""), "choices": [choice]}


def event(data):
    """As a server-sent event."""
    return b"data: " + (data if isinstance(data, str) else json.dumps(data)).encode() + b"\n\n"
