"""What the API answers when it cannot serve: a status, and a body in OpenAI's error format.

Rules it keeps:
- Who is at fault decides the class of status: the caller 4xx, ourselves or a node 5xx (law 7).
- An error names the field (`param`) where there is one, has a stable `code`, and says what to do.
- An end that is no success never becomes a finish reason: `error_of_end` turns it into an ApiError.

It writes no log and sends nothing.
"""

import msgspec

from kvfence.protocol.errors import CallerError, invariant
from kvfence.protocol.words import End, EndReason, Refusal, RefusalCode

INVALID = "invalid_request_error"
RATE = "rate_limit_error"
SERVER = "server_error"

RETRY_SOON_S = 1
RETRY_LATER_S = 5


class ApiError(CallerError):
    """An answer that is no success: status and the members of OpenAI's error object."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        retry_after_s: int | None = None,
        numbers: dict[str, int] | None = None,
        closes: bool = False,
    ) -> None:
        """`numbers` go into the error object beside the message; `closes` ends the connection."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param
        self.code = code
        self.retry_after_s = retry_after_s
        self.numbers = numbers or {}
        self.closes = closes

    def payload(self) -> dict[str, object]:
        """Return the JSON object of the answer: `{"error": {…}}`."""
        error: dict[str, object] = {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }
        return {"error": error | dict(self.numbers)}

    def body(self) -> bytes:
        """Return the payload, encoded."""
        return msgspec.json.encode(self.payload())

    def headers(self) -> dict[str, str]:
        """Return the headers that belong to this error."""
        headers = {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.closes:
            headers["connection"] = "close"
        return headers


def bad_field(param: str, why: str, *, code: str = "invalid_value") -> ApiError:
    """Return a 400 for one field. `why` continues the sentence "`param` …"."""
    return ApiError(400, f"`{param}` {why}", param=param, code=code)


def context_too_long(
    needed_tokens: int, limit_tokens: int, *, prompt_tokens: int | None = None, param: str | None = None
) -> ApiError:
    """Return the 400 for a request that can never fit, with both numbers."""
    parts = f" ({prompt_tokens} of them in the prompt)" if prompt_tokens is not None else ""
    return ApiError(
        400,
        f"This deployment serves at most {limit_tokens} tokens a request, prompt and answer together; "
        f"this request needs at least {needed_tokens}{parts}. Shorten the prompt or lower `max_tokens`.",
        param=param,
        code=RefusalCode.CONTEXT_LENGTH.value,
        numbers={"needed_tokens": needed_tokens, "limit_tokens": limit_tokens},
    )


def invalid_key(why: str) -> ApiError:
    """Return the 401 for a missing, malformed or unknown key. The key is never quoted."""
    return ApiError(401, f"{why} Send `Authorization: Bearer KEY`.", code="invalid_api_key")


def too_many(what: str, *, retry_after_s: int = RETRY_SOON_S) -> ApiError:
    """Return the 429 for a tenant that has too much in flight."""
    return ApiError(429, what, kind=RATE, code="rate_limit_exceeded", retry_after_s=retry_after_s)


def internal_error() -> ApiError:
    """Return the 500 for our own fault; what it was stands in the log, not in the answer."""
    return ApiError(
        500,
        "kvfence failed to serve this request; the fault is on the server. Its log has the reason.",
        kind=SERVER,
        code="internal",
    )


# What a refusal that is worth another try says; each is a 503 with Retry-After.
_REFUSALS: dict[RefusalCode, tuple[str, int]] = {
    RefusalCode.BUSY: ("All KV pages are in use. Try again.", RETRY_SOON_S),
    RefusalCode.QUARANTINE: (
        "Too many KV pages wait for their writers to close. Try again later.",
        RETRY_LATER_S,
    ),
    RefusalCode.DRAINING: ("The server is being stopped. Try again later.", RETRY_LATER_S),
    RefusalCode.STALE: ("The nodes changed while the request was placed. Try again.", RETRY_SOON_S),
    RefusalCode.UNAVAILABLE: ("No node that could serve this is up. Try again later.", RETRY_LATER_S),
    RefusalCode.DEADLINE: ("The request waited too long for free KV pages. Try again.", RETRY_SOON_S),
}

# Ends of an attempt that is over without a full answer: status, words, seconds to wait (None: no hint).
_ENDS: dict[EndReason, tuple[int, str, int | None]] = {
    EndReason.CLIENT_GONE: (503, "The request was aborted on the server.", RETRY_SOON_S),
    EndReason.DEADLINE: (503, "The request did not end before its deadline.", RETRY_SOON_S),
    EndReason.TRANSFER: (502, "The KV pages of this request did not reach the decode node.", None),
    EndReason.PEER_LOST: (503, "A node was lost while it served this request. Try again.", RETRY_SOON_S),
    EndReason.PREEMPTED: (503, "The request was preempted and not resumed. Try again.", RETRY_SOON_S),
    EndReason.EXECUTOR: (500, "The model could not compute this request.", None),
    EndReason.ILLEGAL: (500, "A node saw an event that the protocol forbids, and gave up.", None),
}


def error_of_end(end: End) -> ApiError:
    """Return the answer for an end that is no success. `end.reason` is neither STOP nor LENGTH."""
    if end.reason is EndReason.REFUSED:
        return _error_of_refusal(end.refusal)
    if end.reason is EndReason.INTEGRITY:
        layer = end.integrity.value if end.integrity is not None else "unnamed"
        return ApiError(
            500,
            f"The KV pages of this request failed verification ({layer}); the request was ended so that "
            "nothing of another request can reach it. It may be sent again.",
            kind=SERVER,
            code="integrity",
        )
    invariant(end.reason in _ENDS, f"an end by {end.reason.value} is a success, not an error")
    status, words, retry_after_s = _ENDS[end.reason]
    return ApiError(status, words, kind=SERVER, code=end.reason.value, retry_after_s=retry_after_s)


def _error_of_refusal(refusal: Refusal | None) -> ApiError:
    if refusal is None:
        return ApiError(
            503,
            "The request was refused. Try again.",
            kind=SERVER,
            code="refused",
            retry_after_s=RETRY_SOON_S,
        )
    if refusal.code is RefusalCode.CONTEXT_LENGTH:
        if refusal.needed_tokens is None or refusal.limit_tokens is None:
            return ApiError(
                400,
                "This request can never fit. Shorten the prompt or lower `max_tokens`.",
                code=refusal.code.value,
            )
        return context_too_long(refusal.needed_tokens, refusal.limit_tokens)
    words, retry_after_s = _REFUSALS[refusal.code]
    return ApiError(503, words, kind=SERVER, code=refusal.code.value, retry_after_s=retry_after_s)
