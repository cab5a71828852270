"""A plain client for the tests of the fakes: a few words to a fake server, and what came back."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from tests.check.fake.server import FakeServer
from tests.check.fake.transport import FakeTransport


@dataclass(frozen=True)
class Heard:
    """An answer: status, text, usage and the whole data; `seconds` since it was asked."""

    status: int
    text: str
    usage: dict
    data: dict
    seconds: float
    finish: str | None = None


class Talk:
    """Requests to one server; tenants are API keys."""

    def __init__(self, server, client):
        self.server, self.client = server, client

    async def ask(self, content, tenant="a", **body):
        """A chat with one user message."""
        headers = {"authorization": f"Bearer {tenant}", **body.pop("headers", {})}
        body = {
            "messages": [{"role": "user", "content": content}],
            "temperature": 0,
            "max_tokens": 40,
            **body,
        }
        began = asyncio.get_running_loop().time()
        answer = await self.client.post("/chat/completions", json=body, headers=headers)
        data = answer.json()
        choice = data["choices"][0] if answer.status_code == 200 else {"message": {"content": ""}}
        return Heard(
            answer.status_code,
            choice["message"]["content"],
            data.get("usage", {}),
            data,
            asyncio.get_running_loop().time() - began,
            choice.get("finish_reason"),
        )

    async def hang_up(self, content, tenant="a", *, after_s, **body):
        """Ask, and go away after some seconds."""
        task = asyncio.ensure_future(self.ask(content, tenant, **body))
        await asyncio.sleep(after_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def stream(self, content, tenant="a", *, chunks_max=None, **body):
        """The events of a streamed chat; after `chunks_max` of them the connection is closed."""
        headers = {"authorization": f"Bearer {tenant}"}
        asked = {"messages": [{"role": "user", "content": content}], "temperature": 0, "stream": True, **body}
        events = []
        async with self.client.stream("POST", "/chat/completions", json=asked, headers=headers) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    word = line.removeprefix("data: ")
                    events.append(word if word == "[DONE]" else json.loads(word))
                if chunks_max is not None and len(events) >= chunks_max:
                    break
        return events


@asynccontextmanager
async def talking(setup=None):
    """A client of a new fake server."""
    server = FakeServer(setup)
    transport = FakeTransport(server.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://fake/v1", timeout=600) as client:
        yield Talk(server, client)
