"""The HTTP application: routes, and what every answer has in common.

Rules it keeps:
- Every answer is JSON (or a stream, or the metrics' text), the ones to unknown paths and methods too.
- A client's X-Request-Id is echoed, bounded and printable; without one the answer carries ours. It is
  never a key (law 9).
- What no rule foresaw is a 500 whose reason stands in the log alone.
- `/metrics` and `/server_info` need the admin key once the server listens beyond this machine.

It is Starlette without FastAPI on top: bodies are read by `schemas`, whose errors name the field in
OpenAI's format, and a fifth of a second less passes before the router answers.
"""

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from kvfence.protocol import CORRECT, Decisions
from kvfence.serving.api import Api, ApiSettings, ChatCompletions, Completions
from kvfence.serving.api_body import ClientGone, headers_of
from kvfence.serving.chat import ChatTemplate
from kvfence.serving.errors import ApiError, bad_field, internal_error
from kvfence.serving.jobs import Frontend
from kvfence.serving.limits import Limiter
from kvfence.serving.streaming import NoObserver, Observer
from kvfence.serving.tenants import Tenants, require_admin
from kvfence.serving.tokenizer import TextTokenizer

REQUEST_ID_CHARS_MAX = 128
CONNECTIONS_MAX = 4096
KEEP_ALIVE_S = 30
HEAD_TIMEOUT_S = 30  # from a connection, or the answer before, to the whole head of a request
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

ServerInfo = Callable[[], Mapping[str, object]]
Metrics = Callable[[], bytes]

log = structlog.get_logger()


def build_app(
    frontend: Frontend,
    tokenizer: TextTokenizer,
    settings: ApiSettings,
    *,
    tenants: Tenants | None = None,
    observer: Observer | None = None,
    metrics: Metrics | None = None,
    server_info: ServerInfo | None = None,
    decisions: Decisions = CORRECT,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
) -> Starlette:
    """Return the application. Without `tenants` each bearer token is its own tenant.

    `metrics` returns Prometheus text, `server_info` what JSON can hold; both are called on the event loop.
    `decisions` are asked for the check of law 6 at the edge.
    Raises OperatorError for a chat template that cannot be read.
    """
    api = Api(
        frontend=frontend,
        tokenizer=tokenizer,
        template=ChatTemplate(tokenizer, now=lambda: datetime.fromtimestamp(wall_clock()).astimezone()),
        settings=settings,
        tenants=tenants or Tenants(),
        limiter=Limiter(settings.limits),
        observer=observer or NoObserver(),
        decisions=decisions,
        clock=clock,
        wall_clock=wall_clock,
    )
    state = _ServerState(api, metrics=metrics, server_info=server_info)
    routes = [
        Route("/v1/completions", Completions(api), methods=["POST"]),
        Route("/v1/chat/completions", ChatCompletions(api), methods=["POST"]),
        Route("/v1/models", state.models),
        Route("/v1/models/{model:path}", state.model),
        Route("/health", state.health),
        Route("/metrics", state.metrics),
        Route("/server_info", state.server_info),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(_Edge, observer=api.observer)],
        exception_handlers={HTTPException: _refuse_route},
    )
    app.router.redirect_slashes = False
    return app


def uvicorn_config(
    app: ASGIApp, *, host: str, port: int, headers: Sequence[tuple[str, str]] = ()
) -> uvicorn.Config:
    """Return how the application is served: bounded, silent about requests, without a banner of its own.

    `headers` are on every answer, on those too that are given before the application is asked.
    """
    return uvicorn.Config(
        app,
        http=PromptProtocol,
        host=host,
        port=port,
        lifespan="off",
        log_config=None,
        log_level="error",  # its warnings are about what clients send, which is no news for the operator
        access_log=False,
        server_header=False,
        ws="none",
        headers=list(headers),
        timeout_keep_alive=KEEP_ALIVE_S,
        limit_concurrency=CONNECTIONS_MAX,
    )


class PromptProtocol(H11Protocol):
    """HTTP whose small writes leave at once, and whose clients must ask within `head_timeout_s`.

    uvicorn waits for ever for a first request, and for the rest of one that was begun: whoever opens
    connections and says nothing would take all that there may be from everybody else.
    """

    head_timeout_s: float = HEAD_TIMEOUT_S
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        send_at_once(transport)
        super().connection_made(transport)
        self._wait_for_head()

    def on_response_complete(self) -> None:
        """The answer is over; another request may follow."""
        super().on_response_complete()
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, with the headers that every answer has."""
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"text/plain"),
            (b"connection", b"close"),
        ]
        lines = [b"HTTP/1.1 400 Bad Request", *(b"%b: %b" % header for header in headers), b"", msg.encode()]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()

    def _wait_for_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up_head)

    def _give_up_head(self) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle:  # a request that is being answered has bounds of its own
            self.transport.close()


def send_at_once(transport: asyncio.BaseTransport) -> None:
    """Turn Nagle's algorithm off: an answer of two writes would wait 40 ms for an acknowledgement.

    asyncio does so only for sockets that name TCP as their protocol, which one made beforehand need not do.
    """
    transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _ServerState:
    """Endpoints that only read."""

    def __init__(self, api: Api, *, metrics: Metrics | None, server_info: ServerInfo | None) -> None:
        self._api = api
        self._metrics = metrics
        self._server_info = server_info
        self._created = int(api.wall_clock())

    async def models(self, request: Request) -> Response:
        self._identify(request)
        return _json({"object": "list", "data": [self._card()]})

    async def model(self, request: Request) -> Response:
        self._identify(request)
        model = request.path_params["model"]
        if model != self._api.settings.model_id:
            shown = model[:100] if model.isprintable() else "asked for"
            raise ApiError(
                404, f"The model `{shown}` is not served here.", param="model", code="model_not_found"
            )
        return _json(self._card())

    async def health(self, request: Request) -> Response:
        del request
        is_up = self._api.frontend.limit_tokens is not None
        return _json({"status": "ok" if is_up else "unavailable"}, status=200 if is_up else 503)

    async def metrics(self, request: Request) -> Response:
        self._authorize(request)
        if self._metrics is None:
            raise _no_route()
        return Response(self._metrics(), headers={"content-type": METRICS_TYPE})

    async def server_info(self, request: Request) -> Response:
        self._authorize(request)
        if self._server_info is None:
            raise _no_route()
        return _json(self._server_info())

    def _card(self) -> dict[str, object]:
        return {
            "id": self._api.settings.model_id,
            "object": "model",
            "created": self._created,
            "owned_by": "kvfence",
            "max_model_len": self._api.frontend.limit_tokens,
        }

    def _identify(self, request: Request) -> None:
        self._api.tenants.identify(headers_of(request.scope, b"authorization"))

    def _authorize(self, request: Request) -> None:
        if self._api.settings.admin_only_state:
            require_admin(self._api.tenants.identify(headers_of(request.scope, b"authorization")))


class _Edge:
    """What every request meets first and every answer last: request id, errors."""

    def __init__(self, app: ASGIApp, *, observer: Observer) -> None:
        self._app = app
        self._observer = observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        is_started = False
        own_id = request_id = f"req-{secrets.token_hex(12)}"

        async def send_with_headers(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            request_id = _client_id(scope) or own_id
            await self._app(scope, receive, send_with_headers)
        except ClientGone:
            return
        except ApiError as error:
            self._observer.on_refusal(error.code or "none")
            await self._answer(error, scope, receive, send_with_headers)
        except Exception:
            log.exception("request failed", request=own_id, path=scope["path"])
            if is_started:
                raise  # the connection is closed in mid-answer, which no client takes for an end
            self._observer.on_refusal("internal")
            await self._answer(internal_error(), scope, receive, send_with_headers)

    async def _answer(self, error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
        await Response(error.body(), error.status, headers=error.headers(), media_type="application/json")(
            scope, receive, send
        )


def _client_id(scope: Scope) -> str | None:
    """Return the client's X-Request-Id. Raises ApiError (400) for one that cannot be echoed."""
    given = headers_of(scope, b"x-request-id")
    if not given:
        return None
    value = given[0]
    is_good = value.isascii() and value.isprintable() and 1 <= len(value) <= REQUEST_ID_CHARS_MAX
    if len(given) > 1 or not is_good:
        raise bad_field(
            "X-Request-Id", f"must be sent once, as 1 to {REQUEST_ID_CHARS_MAX} printable ASCII characters"
        )
    return value


def _json(content: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")


def _no_route() -> ApiError:
    return ApiError(404, "There is nothing at this path.", code="not_found")


async def _refuse_route(request: Request, error: Exception) -> Response:
    """Answer for a path or method that has no route, in the same format as everything else."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        refusal = ApiError(405, f"{request.method} is not served at this path.", code="method_not_allowed")
    else:
        refusal = _no_route()
    headers = dict(getattr(error, "headers", None) or {})
    return Response(refusal.body(), refusal.status, headers=headers, media_type="application/json")
