"""One HTTP answer, read into a Reply: whole or as a stream, good or bad.

Rules it keeps:
- Whatever comes is read to where it can be, and every text of it is kept for the search for markers: of an
  answer that is no JSON, of an error's body, of headers.
- The gravest thing is what the Reply says: an error inside a 200 before another model, that before what the
  network did, that before a form that is not known, that before a missing end mark.
- A stream without `[DONE]` is cut, unless the probe learned that this server never sends one.

It opens no connection: bytes and times come from the exchange.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from kvfence.check.read_reply_parts import (
    BROKEN_FINISHES,
    ErrorSaid,
    Json,
    Top,
    as_list,
    as_object,
    as_text,
    error_of,
    finish_of,
    logprobs_of,
    texts_of,
    usage_of,
)
from kvfence.check.reply import Failure, Reply, Text, Usage
from kvfence.check.sse import EventReader, EventTooLongError, ServerEvent

DONE = "[DONE]"
MESSAGE_CHARS_MAX = 2_000
RAW_CHARS_MAX = 1 << 20
SHOWN_CHARS_MAX = 200
CHOICE_MAX = 1_024
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_BUSY = frozenset({429, 503, 529})

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is expected of an answer. `is_model`: whether a name in it is that of the model asked for."""

    is_model: Callable[[str], bool] | None = None
    expects_done: bool = True


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the network, or we, did to an answer before its end."""

    failure: Failure
    message: str | None = None


@dataclass(slots=True)
class _Gathered:
    """What was read so far."""

    texts: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    finishes: dict[int, str] = field(default_factory=dict)
    tops: list[Top] = field(default_factory=list)
    usage: Usage = Usage()  # noqa: RUF009 -- frozen
    model: str | None = None
    is_other_model: bool = False
    has_choices: bool = False
    error: ErrorSaid | None = None
    bad: Trouble | None = None
    raw: list[str] = field(default_factory=list)
    handoff: Json | None = None

    def say(self, place: str, choice: int, text: str) -> None:
        """Keep a text."""
        self.texts.setdefault((place, choice), []).append(text)


class AnswerReader:
    """Reads one answer as its bytes come in."""

    def __init__(self, status: int, headers: Headers, reading: Reading) -> None:
        """The head has come; the body follows."""
        self._status = status
        self._headers = tuple(headers)
        self._reading = reading
        self._found = _Gathered()
        self._type = _content_type(headers)
        is_good = 200 <= status < 300
        self._events = EventReader() if is_good and self._type == "text/event-stream" else None
        self._body: list[bytes] = []
        self._is_done = False
        self._is_given_up = False
        self._chunk_times_s: list[float] = []

    @property
    def chunks(self) -> int:
        """How many pieces of a stream brought text."""
        return len(self._chunk_times_s)

    def feed(self, plain: bytes, at_s: float) -> None:
        """Take the next bytes, which came `at_s` seconds after the request was sent."""
        if self._events is None:
            self._body.append(plain)
        else:
            self._take_events(self._events.feed(plain), at_s)

    def end(self, at_s: float) -> None:
        """The body is over, by the server's will."""
        if self._events is None:
            self._end_body()
            return
        self._take_events(self._events.close(), at_s)
        found = self._found
        if not self._is_done and self._reading.expects_done and found.bad is None:
            found.bad = Trouble(Failure.CUT, f"the stream ended without {DONE}")
        elif not found.has_choices and found.error is None and found.bad is None:
            found.bad = Trouble(Failure.UNKNOWN_FORM, "no event of the stream has choices")

    def reply(self, *, total_s: float, bytes_read: int, trouble: Trouble | None = None) -> Reply:
        """Return what was read. `trouble`: why there was no end."""
        if trouble is not None and self._events is None:
            self._keep_raw()  # half a body is no JSON, but a marker may stand in it
        failure, message = self._judge(trouble)
        found = self._found
        said = found.error
        return Reply(
            status=self._status,
            failure=failure,
            message=None if message is None else message[:MESSAGE_CHARS_MAX],
            error_code=None if said is None else said.code,
            error_param=None if said is None else said.param,
            texts=tuple(self._all_texts()),
            usage=found.usage,
            finish_reasons=tuple(found.finishes[choice] for choice in sorted(found.finishes)),
            model=found.model,
            headers=self._headers,
            chunk_times_s=tuple(self._chunk_times_s),
            ttft_s=self._chunk_times_s[0] if self._chunk_times_s else None,
            total_s=total_s,
            top_logprobs=tuple(found.tops),
            bytes_read=bytes_read,
            handoff=found.handoff,
        )

    def _judge(self, trouble: Trouble | None) -> tuple[Failure | None, str | None]:
        found = self._found
        said = None if found.error is None else found.error.message
        if not 200 <= self._status < 300:
            return failure_of_status(self._status), said or self._page() or self._location() or self._words()
        if found.error is not None:
            return Failure.ERROR_EVENT, said
        if found.is_other_model:
            return Failure.OTHER_MODEL, f"the answer is of the model {found.model!r}"
        trouble = trouble or found.bad
        return (None, None) if trouble is None else (trouble.failure, trouble.message)

    def _all_texts(self) -> list[Text]:
        texts = [Text(place, "".join(said), choice) for (place, choice), said in self._found.texts.items()]
        if self._found.raw:
            texts.append(Text("error", "".join(self._found.raw)[:RAW_CHARS_MAX]))
        return texts + [Text("header", f"{name}: {value}") for name, value in self._headers]

    def _take_events(self, events: Iterator[ServerEvent], at_s: float) -> None:
        if self._is_given_up:
            return
        try:
            for event in events:
                self._take_event(event, at_s)
        except EventTooLongError as error:
            self._is_given_up = True
            self._found.bad = self._found.bad or Trouble(Failure.TOO_LARGE, str(error))

    def _take_event(self, event: ServerEvent, at_s: float) -> None:
        if event.data.strip() == DONE:
            self._is_done = True
            return
        answer = _json(event.data)
        if answer is None:
            self._found.raw.append(event.data)
            shown = f"an event of the stream is no JSON object ({len(event.data)} characters)"
            if event.kind == "error":
                self._found.error = self._found.error or ErrorSaid(message=event.data)
            else:
                self._found.bad = self._found.bad or Trouble(Failure.NOT_JSON, shown)
            return
        if event.kind == "error" and error_of(answer) is None:
            self._found.error = self._found.error or ErrorSaid(message=event.data)
        if self._take(answer, event.data):
            self._chunk_times_s.append(at_s)

    def _end_body(self) -> None:
        text = self._body_text()
        answer = _json(text)
        is_json = self._type is None or self._type == "application/json" or self._type.endswith("+json")
        if answer is not None:
            self._take(answer, text)
        if not 200 <= self._status < 300:
            self._keep_raw()
            return
        if not is_json or answer is None:
            self._keep_raw()
            self._found.bad = Trouble(Failure.NOT_JSON, self._page() or _shown_type(self._type, text))
        elif not self._found.has_choices and self._found.error is None:
            self._keep_raw()
            self._found.bad = Trouble(Failure.UNKNOWN_FORM, "the answer has no choices")

    def _take(self, answer: Json, raw: str) -> bool:
        """Read one object; return whether it brought text."""
        found = self._found
        said = error_of(answer)
        if said is not None:
            found.error = found.error or said
            found.raw.append(raw)
        found.usage = usage_of(answer, found.usage)
        found.handoff = as_object(answer.get("kv_transfer_params")) or found.handoff
        self._take_model(as_text(answer.get("model")))
        has_text = False
        if isinstance(answer.get("choices"), list):
            found.has_choices = True
        for position, entry in enumerate(as_list(answer.get("choices"))):
            has_text = self._take_choice(as_object(entry), position) or has_text
        return has_text

    def _take_model(self, name: str | None) -> None:
        if name is None or self._found.is_other_model:
            return
        self._found.model = name
        is_model = self._reading.is_model
        self._found.is_other_model = is_model is not None and not is_model(name)

    def _take_choice(self, choice: Json, position: int) -> bool:
        found = self._found
        given = choice.get("index")
        number = given if isinstance(given, int) and 0 <= given < CHOICE_MAX else min(position, CHOICE_MAX)
        has_text = False
        for place, text in texts_of(choice):
            found.say(place, number, text)
            has_text = has_text or place != "error"
        tokens, tops = logprobs_of(choice)
        found.tops.extend(tops if number == 0 else ())
        if tokens:
            found.say("logprob", number, "".join(tokens))
        reason, why = finish_of(choice)
        if reason is not None:
            found.finishes[number] = reason
            if reason in BROKEN_FINISHES and found.error is None:
                found.error = ErrorSaid(message=why or f"the finish reason is {reason!r}", code=reason)
        if why is not None:
            found.say("error", number, why)
        return has_text

    def _body_text(self) -> str:
        return b"".join(self._body).decode("utf-8", errors="replace")

    def _keep_raw(self) -> None:
        text = self._body_text()
        if text and not self._found.raw:
            self._found.raw.append(text)

    def _page(self) -> str | None:
        """Say what an HTML page is called: proxies answer with pages."""
        text = self._body_text()
        if self._type != "text/html" and not text.lstrip()[:15].lower().startswith(
            ("<!doctype html", "<html")
        ):
            return None
        title = _TITLE.search(text[:RAW_CHARS_MAX])
        named = " ".join(title.group(1).split())[:SHOWN_CHARS_MAX] if title else "without a title"
        return f"an HTML page: {named}"

    def _words(self) -> str | None:
        """Quote an error's body that is plain text: proxies say why in a line."""
        text = " ".join(self._body_text()[:RAW_CHARS_MAX].split())
        return text[:SHOWN_CHARS_MAX] or None

    def _location(self) -> str | None:
        for name, value in self._headers:
            if name.lower() == "location":
                return f"a redirect to {value.split('?')[0][:SHOWN_CHARS_MAX]}, which is not followed"
        return None


def failure_of_status(status: int) -> Failure:
    """Return what a status that is no success means."""
    if status in _BUSY:
        return Failure.BUSY
    if 300 <= status < 400:
        return Failure.REDIRECTED
    return Failure.SERVER if status >= 500 else Failure.REFUSED


def _content_type(headers: Headers) -> str | None:
    for name, value in headers:
        if name.lower() == "content-type":
            return value.split(";")[0].strip().lower() or None
    return None


def _shown_type(kind: str | None, text: str) -> str:
    if not text:
        return "the body is empty"
    return f"the answer is no JSON object (content type {(kind or 'not given')[:80]}, {len(text)} characters)"


def _json(text: str) -> Json | None:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
