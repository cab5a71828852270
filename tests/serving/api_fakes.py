"""A router that says what a test tells it to, the real tokenizer, and the API over a real connection."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import gguf
import openai
import uvicorn
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from kvfence.engine.loading import default_model_path
from kvfence.engine.sampling import TokenLogprobs
from kvfence.protocol.words import End, EndReason
from kvfence.serving.api import ApiSettings
from kvfence.serving.app import build_app, uvicorn_config
from kvfence.serving.jobs import Delta, EndDelta, Job, TokenDelta
from kvfence.serving.tokenizer import TextTokenizer

MODEL = "smollm2-135m-instruct"
LIMIT_TOKENS = 256


@cache
def tokenizer() -> TextTokenizer:
    """The default model's tokenizer, straight from its GGUF file."""
    reader = gguf.GGUFReader(default_model_path())

    def read(name: str):
        return reader.fields[f"tokenizer.{name}"].contents()

    tokens, kinds = read("ggml.tokens"), read("ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in read("ggml.merges")]
    built = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    built.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
    built.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return TextTokenizer(
        built.to_str(), chat_template=read("chat_template"), settings={"bos_token": "<|im_start|>"}
    )


def ids(text: str) -> tuple[int, ...]:
    return tokenizer().encode(text, add_special_tokens=False)


Script = Callable[[Job], Sequence[Delta]]


def says(text: str, reason: EndReason = EndReason.STOP, *, cached_tokens: int = 0) -> Script:
    """A model that gives this text to everybody, its end token last where it stops by itself."""

    def script(job: Job) -> Sequence[Delta]:
        end = (2,) if reason is EndReason.STOP else ()
        return deltas(job, ids(text) + end, End(reason), cached_tokens=cached_tokens)

    return script


def ends(end: End, text: str = "") -> Script:
    """A model that says a text and then ends like this."""
    return lambda job: deltas(job, ids(text), end)


def deltas(job: Job, tokens: Sequence[int], end: End, *, cached_tokens: int = 0) -> list[Delta]:
    at = len(job.tokens)
    wanted = job.sampling.logprobs
    made: list[Delta] = [
        TokenDelta(token, at + index, None if wanted is None else logprobs(token, wanted))
        for index, token in enumerate(tokens)
    ]
    return [*made, EndDelta(end, at, len(tokens), cached_tokens)]


def logprobs(token: int, wanted: int) -> TokenLogprobs:
    return TokenLogprobs(-0.5, tuple((token + other, -0.5 - other) for other in range(wanted)))


class FakeStream:
    """The deltas of a script; a script without an end waits to be cancelled."""

    def __init__(self, job: Job, script: Sequence[Delta]) -> None:
        self.job = job
        self.cancelled = threading.Event()
        self.delivered = 0
        self._script = script
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()

    def cancel(self) -> None:
        self.cancelled.set()
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Delta]:
        for delta in self._script:
            await asyncio.sleep(0)
            if self.cancelled.is_set() and isinstance(delta, TokenDelta):
                break
            self.delivered += isinstance(delta, TokenDelta)
            yield delta
            if isinstance(delta, EndDelta):
                return
        await self._wake.wait()
        yield EndDelta(End(EndReason.CLIENT_GONE), len(self.job.tokens), self.delivered, 0)


@dataclass
class FakeFrontend:
    """Answers by its script, and remembers what was asked of it."""

    script: Script = field(default_factory=lambda: says(" fine."))
    limit_tokens: int | None = LIMIT_TOKENS
    jobs: list[Job] = field(default_factory=list)
    streams: list[FakeStream] = field(default_factory=list)
    submitted: threading.Event = field(default_factory=threading.Event)

    def submit(self, jobs: Sequence[Job]) -> list[FakeStream]:
        streams = [FakeStream(job, self.script(job)) for job in jobs]
        self.jobs += jobs
        self.streams += streams
        self.submitted.set()
        return streams


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextmanager
def serving(frontend: FakeFrontend, **options) -> Iterator[str]:
    """Serve the API over a loopback port, on a thread of its own; gives the base URL."""
    settings = options.pop("settings", ApiSettings(model_id=MODEL))
    headers = options.pop("headers", ())
    app = build_app(frontend, tokenizer(), settings, **options)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = _Server(uvicorn_config(app, host="127.0.0.1", port=port, headers=headers))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        assert server.up.wait(10)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        assert not thread.is_alive()


@contextmanager
def client_of(frontend: FakeFrontend, **options) -> Iterator[openai.OpenAI]:
    """The official client, connected to the API; it does not try again."""
    with (
        serving(frontend, **options) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        yield client
