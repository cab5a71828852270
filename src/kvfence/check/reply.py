"""What came back: one request's answer, whatever shape it had.

Rules it keeps:
- Every text in which another request's words could stand is in `texts`: content, reasoning, tool arguments,
  logprobs' tokens, error bodies, headers.
- What could not be read is None. Nothing is guessed, and nothing that the server did is an exception here:
  a refusal, a cut stream and a connection that failed are replies.
- A reply lives as long as a scenario looks at it; its texts are never stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

# Finish reasons of the servers that are known.
FINISHES = frozenset(
    ("stop", "length", "content_filter", "tool_calls", "function_call", "abort", "error", "eos", "eos_token")
)
OTHER_FINISH = "other"


@unique
class Failure(StrEnum):
    """Why a request has no whole answer of the form that was asked for."""

    CONNECT = "connect"  # no connection
    TLS = "tls"  # the certificate or the handshake
    TIMEOUT = "timeout"  # nothing, or no end, within the request's time
    HUNG_UP = "hung up"  # by us, as the Ask wanted, or because the lifeline failed
    REFUSED = "refused"  # a status of 4xx
    SERVER = "server"  # a status of 5xx
    BUSY = "busy"  # 429 or 503
    ERROR_EVENT = "error event"  # an error inside a stream or body that began with 200
    CUT = "cut"  # the stream ended without its end mark
    NOT_JSON = "not json"  # an HTML page, a wrong content type, broken JSON
    UNKNOWN_FORM = "unknown form"  # JSON, but no answer of this API
    OTHER_MODEL = "other model"  # the answer names another model: a gateway fell back
    REDIRECTED = "redirected"  # a status of 3xx: redirects are not followed, a key would travel with them
    TOO_LARGE = "too large"  # more bytes than an answer may have; the rest was not read


@dataclass(frozen=True, slots=True)
class Text:
    """One text of a reply. `place` is content, reasoning, tool, logprob, error or header."""

    place: str
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server says them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer. Seconds are counted from when the request was sent; `ttft_s` is the first text's."""

    status: int | None
    failure: Failure | None = None
    message: str | None = None  # the server's own words, or the network's, about the failure
    error_code: str | None = None
    error_param: str | None = None  # the field that the server's error names
    texts: tuple[Text, ...] = ()
    usage: Usage = Usage()
    finish_reasons: tuple[str, ...] = ()
    model: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    chunk_times_s: tuple[float, ...] = ()
    ttft_s: float | None = None
    total_s: float = 0.0
    top_logprobs: tuple[
        tuple[tuple[str, float], ...], ...
    ] = ()  # a position, its tokens with log-probability
    bytes_read: int = 0
    handoff: Mapping[str, object] | None = None  # what it names for another node (`kv_transfer_params`)

    @property
    def is_answer(self) -> bool:
        """Whether it is a whole answer with status 200."""
        return self.failure is None

    @property
    def content(self) -> str:
        """The first choice's text."""
        return "".join(text.text for text in self.texts if text.place == "content" and text.choice == 0)

    @property
    def finish(self) -> str | None:
        """The first choice's finish reason."""
        return self.finish_reasons[0] if self.finish_reasons else None

    @property
    def told_finish(self) -> str | None:
        """The finish reason as it may be stored: one that is not known may hold anybody's words."""
        return self.finish if self.finish is None or self.finish in FINISHES else OTHER_FINISH
