"""A client of one deployment on this machine: asks, streams, leaves, and reads figures.

Rules it keeps: it speaks to loopback alone; each answer is timed from the moment its request was sent;
a failure is an answer too, with its status, code and message as the client saw them.

It is sequential: a stream that was opened can be left standing while another request is made.
"""

import http.client
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from kvfence.protocol.errors import InternalError, invariant

LOOPBACK = "127.0.0.1"
ANSWER_SECONDS_MAX = 240
LINE_BYTES_MAX = 1 << 20
_SAMPLE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Ask:
    """One completion, greedy, as a tenant sends it."""

    tenant: str
    prompt: str
    max_tokens: int
    frequency_penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Seconds count from sending; `code` and `message` are an error's."""

    ask: Ask
    status: int
    text: str
    seconds: float
    first_token_seconds: float | None = None
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    code: str | None = None
    message: str | None = None
    unsafe_header: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it was answered to its end; a stream that began with 200 can end in an error."""
        return self.status == http.client.OK and self.code is None and self.finish is not None


class Stream:
    """An answer that comes token by token. Leaving it, by `close`, is what a client does that disconnects."""

    def __init__(self, connection: http.client.HTTPConnection, ask: Ask, model: str) -> None:
        """Send the request; nothing is waited for."""
        self._connection, self._ask = connection, ask
        self._reply: http.client.HTTPResponse | None = None
        self._text = ""
        self._finish: str | None = None
        self._usage: Mapping[str, Any] = {}
        self._error: Mapping[str, Any] = {}
        self._first: float | None = None
        body = {
            "model": model,
            "prompt": ask.prompt,
            "max_tokens": ask.max_tokens,
            "temperature": 0,
            "frequency_penalty": ask.frequency_penalty,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {ask.tenant}"}
        self._sent = time.monotonic()
        connection.request("POST", "/v1/completions", json.dumps(body), headers)

    def wait_first(self) -> bool:
        """Read until the first token has come; False when the answer is over without one."""
        while self._first is None and self._next():
            pass
        return self._first is not None

    def read(self) -> Answer:
        """Read to the end and close."""
        with self:
            while self._next():
                pass
        return self._answer()

    def close(self) -> None:
        """Leave, wherever the answer stands."""
        if self._reply is not None:
            self._reply.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self) -> bool:
        """Take one line of the answer; False at its end."""
        if self._reply is None:
            self._reply = self._connection.getresponse()
            if self._reply.status != http.client.OK:
                self._error = json.loads(self._reply.read())["error"]
        if self._reply.status != http.client.OK:
            return False
        line = self._reply.readline(LINE_BYTES_MAX)
        if line.startswith(b"data: {"):
            self._take(json.loads(line.removeprefix(b"data: ")))
        return bool(line)

    def _take(self, event: Mapping[str, Any]) -> None:
        self._error = event.get("error") or self._error
        self._usage = event.get("usage") or self._usage
        for choice in event.get("choices", ()):
            if self._first is None:
                self._first = time.monotonic() - self._sent
            self._text += choice["text"]
            self._finish = choice["finish_reason"] or self._finish

    def _answer(self) -> Answer:
        if self._reply is None:
            raise InternalError("an answer was read to its end and has no head: look at the router's log")
        details = self._usage.get("prompt_tokens_details") or {}
        return Answer(
            ask=self._ask,
            status=self._reply.status,
            text=self._text,
            seconds=time.monotonic() - self._sent,
            first_token_seconds=self._first,
            finish=self._finish,
            prompt_tokens=self._usage.get("prompt_tokens"),
            completion_tokens=self._usage.get("completion_tokens"),
            cached_tokens=details.get("cached_tokens"),
            code=self._error.get("code"),
            message=self._error.get("message"),
            unsafe_header=self._reply.headers.get("x-kvfence-unsafe"),
        )


class Client:
    """Requests to one deployment."""

    def __init__(self, url: str, model: str) -> None:
        """Speak to `url`, which must be on loopback: a replay leaks on purpose, and on its own machine."""
        parts = urlsplit(url)
        invariant(
            parts.hostname == LOOPBACK and parts.port, f"a replay speaks to loopback alone, not to {url}"
        )
        self._port, self._model = parts.port, model

    def stream(self, ask: Ask) -> Stream:
        """Send a request and leave the answer standing."""
        return Stream(self._connection(), ask, self._model)

    def complete(self, ask: Ask) -> Answer:
        """Send a request and read its answer."""
        return self.stream(ask).read()

    def server_info(self) -> dict[str, Any]:
        """Return what the nodes report of themselves."""
        info: dict[str, Any] = json.loads(self._get("/server_info"))
        return info

    def metrics(self) -> "Metrics":
        """Return every sample of `/metrics` as it is now."""
        return Metrics.parse(self._get("/metrics"))

    def _get(self, path: str) -> str:
        connection = self._connection()
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(LOOPBACK, self._port, timeout=ANSWER_SECONDS_MAX)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The samples of one reading: (name, labels, value)."""

    samples: tuple[tuple[str, Mapping[str, str], float], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the exposition text."""
        matches = (_SAMPLE.fullmatch(line) for line in text.splitlines())
        return cls(
            tuple(
                (match["name"], dict(_LABEL.findall(match["labels"] or "")), float(match["value"]))
                for match in matches
                if match
            )
        )

    def total(self, name: str, **labels: str) -> float:
        """Sum the samples of a metric whose labels include these; none make zero."""
        return sum(
            value for found, has, value in self.samples if found == name and labels.items() <= has.items()
        )

    def raised(self, name: str, label: str) -> tuple[str, ...]:
        """Return the values of a label for which the metric is above zero."""
        return tuple(
            sorted({has[label] for found, has, value in self.samples if found == name and value > 0})
        )
