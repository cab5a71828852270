"""The fake server: OpenAI's endpoints over the fake engine.

`FakeServer(setup).app` is an ASGI app. It knows /v1/models, chat and plain completions (streaming or not,
under any prefix, Azure's too), /tokenize, /version and /health. API keys become tenants.
"""

import asyncio
import hashlib
import time

from tests.check.fake import answers
from tests.check.fake.app import FakeApp, Response, json_response
from tests.check.fake.bodies import chat_text, jobs_of, prompt_words
from tests.check.fake.engine import Engine
from tests.check.fake.errors import error_body, error_response, refusal_response
from tests.check.fake.faults import rules_for
from tests.check.fake.jobs import RefusedError
from tests.check.fake.misbehaviour import misbehaving
from tests.check.fake.setup import Setup
from tests.check.fake.transport import DownError
from tests.check.fake.vocabulary import Vocabulary, pieces_of

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


class FakeServer:
    """A server by its setup."""

    def __init__(self, setup=None):
        self.setup = setup or Setup()
        self.rules = rules_for(self.setup.faults)
        self.engine = Engine(self.setup, self.rules)
        self.vocabulary = Vocabulary()
        self.requests = 0
        self.app = FakeApp(misbehaving(self.handle, self.setup.misbehaviours))

    async def handle(self, request):
        """Answer one request."""
        if self.engine.is_down:
            raise DownError
        tenant = self._tenant(request.headers)
        if tenant is None:
            return error_response(
                self.setup.dialect, "Incorrect API key provided.", status=401, code="invalid_api_key"
            )
        path = request.path
        if path.endswith("/models"):
            return self._models()
        if path.endswith("/version"):
            return json_response({"version": "0.0-fake"})
        if path.endswith("/health"):
            return Response(200, b"")
        if path.endswith("/tokenize") and self.setup.has_tokenize:
            return self._tokenize(request)
        is_chat = path.endswith("/chat/completions")
        if is_chat or (path.endswith("/completions") and self.setup.has_completions):
            return await self._complete(request, tenant, is_chat=is_chat)
        return error_response(self.setup.dialect, "Not Found", status=404)

    def _tenant(self, headers):
        key = (
            headers.get("authorization", "").removeprefix("Bearer ")
            or headers.get("api-key")
            or headers.get("x-api-key")
        )
        if self.setup.keys is not None:
            return self.setup.keys.get(key)
        return "anonymous" if not key else hashlib.sha256(key.encode()).hexdigest()[:8]

    def _models(self):
        more = {"object": "model", "owned_by": "fake", "created": 0}
        if self.setup.advertises:
            more["max_model_len"] = self.setup.advertised_tokens or self.setup.context_tokens
        names = (self.setup.model, *self.setup.adapters)
        return json_response({"object": "list", "data": [{"id": name, **more} for name in names]})

    def _tokenize(self, request):
        try:
            body = request.json()
        except ValueError:
            return error_response(self.setup.dialect, "the body is no JSON")
        text = chat_text(body["messages"]) if "messages" in body else body.get("prompt", "")
        ids = [self.vocabulary.id_of(piece) for piece in pieces_of(text)]
        return json_response({"count": len(ids), "tokens": ids, "max_model_len": self.setup.context_tokens})

    async def _complete(self, request, tenant, *, is_chat):
        self.requests += 1
        if len(request.body) > self.setup.body_bytes_max:
            return error_response(self.setup.dialect, "Request body too large", status=413)
        try:
            body = request.json()
            words = prompt_words(body, self.vocabulary, self.setup, is_chat=is_chat)
            if body.get("model") not in (None, self.setup.model, *self.setup.adapters):
                message = f"The model `{body['model']}` does not exist."
                return error_response(self.setup.dialect, message, status=404, code="model_not_found")
            jobs = jobs_of(body, words, tenant, request.headers.get("x-request-id"), self.setup)
            rows = [self.engine.admit(job) for job in jobs]
        except RefusedError as refused:
            return refusal_response(self.setup, refused)
        except ConnectionError:
            raise
        except ValueError:
            return error_response(self.setup.dialect, "the body is no JSON")
        head = {"id": f"cmpl-{self.requests}", "created": int(time.monotonic()), "model": jobs[0].model}
        if body.get("stream"):
            return Response(200, self._stream(head, body, rows, is_chat=is_chat), EVENT_STREAM)
        return await self._whole(head, body, rows, is_chat=is_chat)

    async def _whole(self, head, body, rows, *, is_chat):
        gathered = [asyncio.ensure_future(_all(self.engine.pieces(row))) for row in rows]
        try:
            choices = [(await pieces, row.finish) for pieces, row in zip(gathered, rows, strict=True)]
        except RefusedError as refused:
            return refusal_response(self.setup, refused)
        finally:
            for pieces in gathered:
                pieces.cancel()
        usage = answers.usage_of(rows, self.rules, self.setup) if self.setup.has_usage else None
        data = answers.whole(head, body, choices, usage, is_chat=is_chat)
        if rows[0].job.wants_handoff:
            data["kv_transfer_params"] = self._handoff(rows[0])
        return json_response(data)

    def _handoff(self, row):
        return {"do_remote_prefill": True, "do_remote_decode": False, **row.handoff}

    async def _stream(self, head, body, rows, *, is_chat):
        queue = asyncio.Queue()
        feeders = [
            asyncio.ensure_future(_feed(self.engine, row, index, queue)) for index, row in enumerate(rows)
        ]
        said, open_rows = set(), len(rows)
        try:
            while open_rows:
                index, piece = await queue.get()
                if isinstance(piece, RefusedError):
                    yield answers.event(error_body(self.setup.dialect, piece.message, status=piece.status))
                    break
                if isinstance(piece, Exception):
                    raise piece
                finish = rows[index].finish if piece is None else None
                pieces = [] if piece is None else [piece]
                open_rows -= piece is None
                first = index not in said
                said.add(index)
                data = answers.chunk(head, body, index, pieces, finish, is_chat=is_chat, is_first=first)
                yield answers.event(data)
            if (
                self.setup.has_usage
                and (body.get("stream_options") or {}).get("include_usage")
                and not open_rows
            ):
                usage = answers.usage_of(rows, self.rules, self.setup)
                kind = answers.OBJECTS[is_chat] + (".chunk" if is_chat else "")
                yield answers.event({**head, "object": kind, "choices": [], "usage": usage})
            yield answers.event("[DONE]")
        finally:
            for feeder in feeders:
                feeder.cancel()


async def _all(pieces):
    return [piece async for piece in pieces]


async def _feed(engine, row, index, queue):
    try:
        async for piece in engine.pieces(row):
            queue.put_nowait((index, piece))
        queue.put_nowait((index, None))
    except (RefusedError, ConnectionError) as error:
        queue.put_nowait((index, error))
