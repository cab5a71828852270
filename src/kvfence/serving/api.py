"""The two completion endpoints: from a request's body to jobs, and from their events to an answer.

Rules it keeps:
- Nothing is sent before the first event of the router: until then every failure has a status of its own.
- Ids of requests and jobs are drawn here; what a client sends is never one (law 9).
- The capacity check here spares a way to the router; the router's core decides (law 6).
- However a request ends, its jobs are cancelled or over and its tenant's share is given back.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.types import Receive, Scope, Send

from kvfence.protocol import CORRECT, Decisions
from kvfence.serving.api_body import BODY_TIMEOUT_S, check_content_type, parse_object
from kvfence.serving.api_connection import Connection
from kvfence.serving.api_format import ChatFormat, Collected, CompletionFormat, Format, Head, usage_of
from kvfence.serving.chat import ChatTemplate
from kvfence.serving.detokenizer import Detokenizer
from kvfence.serving.errors import ApiError, bad_field, context_too_long
from kvfence.serving.jobs import EndDelta, Frontend, Job
from kvfence.serving.limits import Admission, Limiter, TenantLimits
from kvfence.serving.schemas import ChatRequest, Common, CompletionRequest, read_chat, read_completion
from kvfence.serving.streaming import Choice, Finished, NoObserver, Observer, Run
from kvfence.serving.tenants import Principal, Tenants
from kvfence.serving.tokenizer import TextTokenizer

T = TypeVar("T")
INLINE_SIZE_MAX = 4096  # more bytes or characters are worked on aside, so that other requests go on


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Return what `work` returns, done on a thread when it is for more than a little input."""
    return work() if size <= INLINE_SIZE_MAX else await asyncio.to_thread(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """What the operator decides about the API. `vocab_size` is the model's, where it is known."""

    model_id: str
    body_bytes_max: int = 4 << 20
    body_timeout_s: float = BODY_TIMEOUT_S
    client_stall_s: float = 60.0
    limits: TenantLimits = field(default_factory=TenantLimits)
    vocab_size: int | None = None
    admin_only_state: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything the endpoints need. One for an app; nothing of it is global."""

    frontend: Frontend
    tokenizer: TextTokenizer
    template: ChatTemplate
    settings: ApiSettings
    tenants: Tenants
    limiter: Limiter
    observer: Observer = field(default_factory=NoObserver)
    decisions: Decisions = CORRECT
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time

    @property
    def vocab_size(self) -> int:
        """Token ids from here on are refused: the tokenizer or the model has none."""
        known = self.settings.vocab_size
        return self.tokenizer.vocab_size if known is None else min(known, self.tokenizer.vocab_size)


@dataclass(frozen=True, slots=True)
class Order:
    """A request as the two endpoints have in common: its prompts in tokens, and how to answer."""

    common: Common
    prompts: tuple[tuple[int, ...], ...]
    answer_id: str
    answer: Format
    started_at: float
    param: str  # the field that holds the prompt


class Endpoint:
    """One of the two endpoints, as an ASGI application."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def order(self, body: bytes, started_at: float) -> Order:
        """Return what the body asks for. Raises ApiError."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises ApiError before anything is sent, or ClientGone."""
        api, settings = self._api, self._api.settings
        started_at = api.clock()
        connection = Connection(scope, receive, send, stall_s=settings.client_stall_s)
        principal = api.tenants.identify(connection.headers(b"authorization"))
        with api.limiter.enter(principal.tenant) as admission:
            check_content_type(scope)
            body = await connection.read_body(
                bytes_max=settings.body_bytes_max, timeout_s=settings.body_timeout_s
            )
            order = await self.order(body, started_at)
            jobs = self._jobs(order, principal)
            self._admit(order, jobs, admission)
            with self._running(order, jobs, admission) as run:
                answer = self._stream if order.common.stream else self._whole
                await connection.while_connected(answer(connection, order, run))

    def _head(self, prefix: str, common: Common) -> Head:
        api = self._api
        if common.model != api.settings.model_id:
            raise ApiError(
                404,
                f"The model `{common.model[:100]}` is not served here; `{api.settings.model_id}` is.",
                param="model",
                code="model_not_found",
            )
        return Head(
            answer_id=f"{prefix}-{secrets.token_hex(12)}",
            created=int(api.wall_clock()),
            model=api.settings.model_id,
            tokenizer=api.tokenizer,
            with_logprobs=common.sampling.logprobs is not None,
            with_usage=common.include_usage,
        )

    def _check_length(self, text: str, param: str, max_tokens: int | None) -> None:
        """Refuse a text that is too long however it is tokenised, which would take seconds."""
        limit, tokens_min = self._api.frontend.limit_tokens, self._api.tokenizer.tokens_min(text)
        decisions = self._api.decisions
        needed = decisions.needed_tokens(tokens_min, max_tokens or 1)
        if limit is not None and not decisions.admits(needed, limit):
            raise context_too_long(needed, limit, param=param)

    def _jobs(self, order: Order, principal: Principal) -> list[Job]:
        common, jobs = order.common, []
        for number, tokens in enumerate(order.prompts):
            self._check_prompt(order, tokens)
            drawn_seed = secrets.randbits(62)
            for choice in range(common.n):
                job = Job(
                    request_id=f"{order.answer_id}-{number * common.n + choice}",
                    tenant=principal.tenant,
                    domain=principal.domain,
                    tokens=tokens,
                    max_tokens=common.max_tokens,
                    sampling=common.sampling_of(choice, drawn_seed),
                )
                jobs.append(job)
        return jobs

    def _check_prompt(self, order: Order, tokens: Sequence[int]) -> None:
        limit = self._api.frontend.limit_tokens
        if not tokens:
            raise bad_field(order.param, "has no token in it")
        if max(tokens) >= self._api.vocab_size:
            raise bad_field(order.param, "has a token that the tokenizer knows and the model does not")
        decisions = self._api.decisions
        needed = decisions.needed_tokens(len(tokens), order.common.max_tokens or 1)
        if limit is not None and not decisions.admits(needed, limit):
            raise context_too_long(needed, limit, prompt_tokens=len(tokens), param=order.param)

    def _admit(self, order: Order, jobs: Sequence[Job], admission: Admission) -> None:
        tokens = sum(len(job.tokens) + (job.max_tokens or 0) for job in jobs)
        admission.take(requests=len(jobs) - 1, tokens=tokens, limit_tokens=self._api.frontend.limit_tokens)
        self._api.observer.on_request(
            prompt_tokens=sum(len(prompt) for prompt in order.prompts), choices=len(jobs)
        )

    @contextmanager
    def _running(self, order: Order, jobs: Sequence[Job], admission: Admission) -> Iterator[Run]:
        """Hand the jobs to the router; whatever happens, none is left running."""
        api, counted = self._api, order.common.max_tokens is not None
        streams = api.frontend.submit(jobs)
        run = Run(
            [
                Choice(
                    index,
                    stream,
                    Detokenizer(api.tokenizer, order.common.stops),
                    observer=api.observer,
                    started_at=order.started_at,
                    clock=api.clock,
                    on_token=(lambda: None) if counted else admission.count_token,
                )
                for index, stream in enumerate(streams)
            ]
        )
        try:
            yield run
        finally:
            run.close()

    async def _whole(self, connection: Connection, order: Order, run: Run) -> None:
        choices = [Collected() for _ in range(len(order.prompts) * order.common.n)]
        ends: dict[int, EndDelta] = {}
        async with aclosing(run.events()) as events:
            async for event in events:
                choices[event.index].add(event)
                if isinstance(event, Finished):
                    ends[event.index] = event.end
        await connection.send_json(order.answer.whole(choices, usage_of(ends, order.common.n)))

    async def _stream(self, connection: Connection, order: Order, run: Run) -> None:
        answer, opened = order.answer, set[int]()
        ends: dict[int, EndDelta] = {}
        async with aclosing(run.events()) as events:
            try:
                async for event in events:
                    if not opened:
                        await connection.start_stream()
                    if event.index not in opened:
                        opened.add(event.index)
                        opening = answer.opening(event.index)
                        if opening is not None:
                            await connection.send_event(opening)
                    if isinstance(event, Finished):
                        ends[event.index] = event.end
                        await connection.send_event(answer.finished(event))
                    elif event.piece:
                        await connection.send_event(answer.spoke(event))
            except ApiError as error:
                if not opened:
                    raise
                self._api.observer.on_refusal(error.code or "none")
                await connection.send_error(error)
                return
        if order.common.include_usage:
            await connection.send_event(answer.usage(usage_of(ends, order.common.n)))
        await connection.end_stream()


class Completions(Endpoint):
    """/v1/completions. Special tokens that a prompt spells are read as such: it is the raw interface."""

    async def order(self, body: bytes, started_at: float) -> Order:
        """See Endpoint."""
        request: CompletionRequest = await _aside(
            len(body), lambda: read_completion(parse_object(body), vocab_size=self._api.vocab_size)
        )
        head = self._head("cmpl", request.common)
        prompts = [
            await self._encode(prompt, request.common) if isinstance(prompt, str) else prompt
            for prompt in request.prompts
        ]
        answer = CompletionFormat(head)
        return Order(request.common, tuple(prompts), head.answer_id, answer, started_at, "prompt")

    async def _encode(self, text: str, common: Common) -> tuple[int, ...]:
        self._check_length(text, "prompt", common.max_tokens)
        return await _aside(len(text), lambda: self._api.tokenizer.encode(text, add_special_tokens=True))


class ChatCompletions(Endpoint):
    """/v1/chat/completions. Special tokens that a message spells are text."""

    async def order(self, body: bytes, started_at: float) -> Order:
        """See Endpoint."""
        request: ChatRequest = await _aside(
            len(body), lambda: read_chat(parse_object(body), vocab_size=self._api.vocab_size)
        )
        head = self._head("chatcmpl", request.common)

        def check(text: str) -> None:
            self._check_length(text, "messages", request.common.max_tokens)

        encode = self._api.template.encode
        tokens = await _aside(len(body), lambda: encode(request.messages, check=check))
        return Order(request.common, (tokens,), head.answer_id, ChatFormat(head), started_at, "messages")
