"""What servers and what stands before them do beyond leaking: each wraps a handler of requests.

`misbehaving(handler, names)` puts them around it, the first outermost.
"""

import asyncio
from dataclasses import replace

from tests.check.fake.app import Response
from tests.check.fake.errors import error_body, error_response

HTML = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
SLOW_S = 45.0
GATEWAY_MODEL = "toy-small"


def _is_completion(request):
    return request.path.endswith("completions")


def _only_completions(make):
    """A misbehaviour that leaves all other endpoints alone."""

    def wrap(handler):
        async def handle(request):
            return await make(handler, request) if _is_completion(request) else await handler(request)

        return handle

    return wrap


async def _slow(handler, request):
    await asyncio.sleep(SLOW_S)
    return await handler(request)


async def _busy(handler, request):
    return error_response(
        "openai", "Rate limit reached.", status=429, code="rate_limit_exceeded", retry_after="20"
    )


async def _broken(handler, request):
    return error_response("vllm", "Internal server error", status=500)


async def _html(handler, request):
    return Response(502, HTML, {"content-type": "text/html"})


async def _html_200(handler, request):
    return Response(200, HTML, {"content-type": "text/html; charset=utf-8"})


async def _wrong_type(handler, request):
    response = await handler(request)
    return replace(response, headers={**response.headers, "content-type": "text/plain"})


async def _not_json(handler, request):
    return Response(200, b'{"choices": [', {"content-type": "application/json"})


async def _too_large(handler, request):
    return Response(413, b"Request Entity Too Large", {"content-type": "text/plain"})


async def _forbidden(handler, request):
    return error_response("openai", "You are not allowed to use this model.", status=403)


def _edits_events(edit):
    """A misbehaviour of streams: `edit` is given the events' bytes one by one, and yields what is sent."""

    async def make(handler, request):
        response = await handler(request)
        if isinstance(response.body, bytes) or response.status != 200:
            return response
        return replace(response, body=edit(response.body))

    return _only_completions(make)


async def _cut(events):
    count = 0
    async for event in events:
        if count == 3:
            await events.aclose()
            raise ConnectionError("cut")
        count += 1
        yield event


async def _undone(events):
    async for event in events:
        if b"[DONE]" not in event:
            yield event


async def _error_inside(events):
    count = 0
    async for event in events:
        if count == 2:
            await events.aclose()
            body = error_body("vllm", "Internal server error", status=500)
            yield b"data: " + str(body).replace("'", '"').replace("None", "null").encode() + b"\n\n"
            yield b"data: [DONE]\n\n"
            return
        count += 1
        yield event


async def _pings(events):
    """Comments and odd line ends between the events, as proxies send them."""
    async for event in events:
        yield b": ping\r\n\r\n" + event.replace(b"\n\n", b"\r\n\r\n")


async def _torn(events):
    """Every event in pieces of a few bytes."""
    async for event in events:
        for at in range(0, len(event), 7):
            yield event[at : at + 7]


def _retries(handler):
    """A gateway that sends what failed again, and answers everything from the second try on as if once."""

    async def handle(request):
        response = await handler(request)
        return await handler(request) if response.status >= 500 else response

    return handle


async def _fall_back(handler, request):
    """A gateway that has another model answer, and says so in the model field alone."""
    response = await handler(request)
    name = request.json().get("model", "").encode()
    other = GATEWAY_MODEL.encode()
    if isinstance(response.body, bytes):
        return replace(response, body=response.body.replace(b'"' + name + b'"', b'"' + other + b'"'))

    async def renamed(events):
        async for event in events:
            yield event.replace(b'"' + name + b'"', b'"' + other + b'"')

    return replace(response, body=renamed(response.body))


MISBEHAVIOURS = {
    "slow": _only_completions(_slow),
    "429": _only_completions(_busy),
    "500": _only_completions(_broken),
    "403": _only_completions(_forbidden),
    "413": _only_completions(_too_large),
    "html": _only_completions(_html),
    "html-200": _only_completions(_html_200),
    "wrong-type": _only_completions(_wrong_type),
    "not-json": _only_completions(_not_json),
    "cut": _edits_events(_cut),
    "no-done": _edits_events(_undone),
    "error-event": _edits_events(_error_inside),
    "pings": _edits_events(_pings),
    "torn": _edits_events(_torn),
    "retrying-gateway": _retries,
    "falling-back": _only_completions(_fall_back),
}


def misbehaving(handler, names):
    """The handler with these misbehaviours around it."""
    for name in reversed(names):
        handler = MISBEHAVIOURS[name](handler)
    return handler
