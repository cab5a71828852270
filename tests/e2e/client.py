"""A client that reads a stream event by event, and may leave in the middle of it."""

import http.client
import json
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CLIENT_SECONDS_MAX = 240


@dataclass
class Answer:
    """A stream as it was read: whole only when `done` (the mark of a complete stream was seen)."""

    text: str = ""
    tokens: list[str] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tops: list[dict[str, float]] = field(default_factory=list)
    finish: str | None = None
    usage: dict | None = None
    error: dict | None = None
    done: bool = False

    def add(self, event: dict) -> None:
        if "error" in event:
            self.error = event["error"]
            return
        self.usage = event.get("usage") or self.usage
        for choice in event["choices"]:
            self.text += choice["text"]
            self.finish = choice["finish_reason"] or self.finish
            told = choice["logprobs"] or {"tokens": [], "token_logprobs": [], "top_logprobs": []}
            self.tokens += told["tokens"]
            self.logprobs += told["token_logprobs"]
            self.tops += told["top_logprobs"]


class Stream:
    """A streamed completion. `status` is known at once; events come by `next_event` or `read`."""

    def __init__(self, url: str, body: dict, headers=None, seconds=CLIENT_SECONDS_MAX):
        parts = urlsplit(url)
        self.answer = Answer()
        self._reply: http.client.HTTPResponse | None = None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)
        self._connection.request(
            "POST",
            "/v1/completions",
            json.dumps(body),
            {"Content-Type": "application/json", **(headers or {})},
        )

    @property
    def status(self) -> int:
        """Waits for the head of the answer."""
        return self._head().status

    def _head(self) -> http.client.HTTPResponse:
        if self._reply is None:
            self._reply = self._connection.getresponse()
            if self._reply.status != 200:
                self.answer.error = json.loads(self._reply.read())["error"]
        return self._reply

    def next_event(self) -> dict | None:
        """The next event, or None at the end, whichever end it is. A broken connection raises."""
        reply = self._head()
        while self.answer.error is None or reply.status == 200:
            line = reply.readline()
            if not line:
                return None
            if line.startswith(b"data: [DONE]"):
                self.answer.done = True
            elif line.startswith(b"data: "):
                event = json.loads(line[6:])
                self.answer.add(event)
                return event
        return None

    def read(self) -> Answer:
        """To the end; then the connection is closed."""
        try:
            while self.next_event() is not None:
                pass
        finally:
            self.close()
        return self.answer

    def close(self) -> None:
        """Leave, wherever the answer stands."""
        if self._reply is not None:
            self._reply.close()
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
