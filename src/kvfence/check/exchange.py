"""One request and its answer over HTTP, to the end or to where it is broken off.

Rules it keeps:
- One request is sent once. Its time and its bytes are bounded; whatever the network does is a Reply.
- Hanging up closes the connection: an answer that was not read to its end is never left to a pool. The same
  holds when the task is cancelled, before the CancelledError goes up.
- Times are the running loop's, from when the request is handed to the network.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx

from kvfence.check.inflate import Body, BodyTooLargeError, BodyUnreadableError
from kvfence.check.read_reply import AnswerReader, Headers, Reading, Trouble
from kvfence.check.reply import Failure, Reply

ANSWER_BYTES_MAX = 32 << 20
CAUSES_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long and how much of an answer is read."""

    timeout_s: float
    hang_up_after_s: float | None = None
    hang_up_after_chunks: int | None = None
    bytes_max: int = ANSWER_BYTES_MAX

    @property
    def wait_s(self) -> float:
        """Seconds until something ends it."""
        return self.timeout_s if self.hang_up_after_s is None else min(self.timeout_s, self.hang_up_after_s)

    def over_time(self) -> Trouble:
        """Return what it is when they are over."""
        if self.hang_up_after_s is not None and self.hang_up_after_s <= self.timeout_s:
            return Trouble(Failure.HUNG_UP, f"by us, after {self.hang_up_after_s:g} s, as wanted")
        return Trouble(Failure.TIMEOUT, f"no end within {self.timeout_s:g} s")


class _Progress:
    """What there is of an answer, for whoever has to break it off."""

    reader: AnswerReader | None = None
    bytes_read = 0


async def exchange(
    http: httpx.AsyncClient,
    request: httpx.Request,
    *,
    bounds: Bounds,
    reading: Reading,
    redact: Callable[[str], str],
) -> Reply:
    """Send a request and return what came of it. `redact` is applied to everything that headers say."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    progress = _Progress()
    try:
        async with asyncio.timeout(bounds.wait_s):
            trouble = await _carry(http, request, bounds, reading, redact, progress)
    except TimeoutError:
        trouble = bounds.over_time()
    except httpx.TransportError as error:
        trouble = trouble_of(error, redact)
    total_s = loop.time() - began_s
    if progress.reader is None:
        trouble = _without_a_word(trouble or Trouble(Failure.CUT), request)
        return Reply(status=None, failure=trouble.failure, message=trouble.message, total_s=total_s)
    return progress.reader.reply(total_s=total_s, bytes_read=progress.bytes_read, trouble=trouble)


async def _carry(
    http: httpx.AsyncClient,
    request: httpx.Request,
    bounds: Bounds,
    reading: Reading,
    redact: Callable[[str], str],
    progress: _Progress,
) -> Trouble | None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    response = await http.send(request, stream=True, follow_redirects=False)
    try:
        progress.reader = AnswerReader(response.status_code, _headers(response, redact), reading)
        # A transport may hand over an answer that was read and unpacked before.
        encoding = None if response.is_stream_consumed else response.headers.get("content-encoding")
        body = Body(encoding, bounds.bytes_max)
        async for chunk in _chunks(response):
            progress.bytes_read += len(chunk)
            progress.reader.feed(body.plain(chunk), loop.time() - began_s)
            wanted = bounds.hang_up_after_chunks
            if wanted is not None and progress.reader.chunks >= wanted:
                return Trouble(Failure.HUNG_UP, f"by us, after {wanted} chunks, as wanted")
        progress.reader.end(loop.time() - began_s)
    except BodyTooLargeError as error:
        return Trouble(Failure.TOO_LARGE, str(error))
    except BodyUnreadableError as error:
        return Trouble(Failure.NOT_JSON, str(error))
    finally:
        await response.aclose()
    return None


def _without_a_word(trouble: Trouble, request: httpx.Request) -> Trouble:
    """Say what else it may be when a connection over TLS is closed before any answer."""
    if trouble.failure is not Failure.CUT or request.url.scheme != "https":
        return trouble
    # The reset may overtake the alert that says why, and then nothing else tells.
    hint = "a server that wants a client certificate closes like this, too"
    return Trouble(Failure.CUT, f"{trouble.message or 'no answer'}; {hint}")


async def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    if response.is_stream_consumed:
        yield response.content
        return
    async for chunk in response.aiter_raw():
        yield chunk


def _headers(response: httpx.Response, redact: Callable[[str], str]) -> Headers:
    return tuple((name, redact(value)) for name, value in response.headers.multi_items())


def trouble_of(error: httpx.TransportError, redact: Callable[[str], str]) -> Trouble:
    """Return what a failure of the network means: no connection, a bad certificate, or an answer cut off."""
    causes = list(_causes(error))
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    words = redact(str(error) or type(error).__name__)
    if tls is not None:
        # With TLS 1.3 a server refuses a client's certificate only after the handshake, at the first read.
        return Trouble(Failure.TLS, redact(str(tls) or words))
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError | httpx.PoolTimeout):
        told = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
        return Trouble(Failure.CONNECT, redact(told[-1]) if told else words)
    if isinstance(error, httpx.TimeoutException):
        return Trouble(Failure.TIMEOUT, words)
    return Trouble(Failure.CUT, words)


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and len(found) < CAUSES_MAX:
        found.append(step)
        step = step.__cause__ or step.__context__
    return found
