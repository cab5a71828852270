"""What the API hands to the engine, and what becomes of it: a Job, its Row, the pieces of its answer."""

import asyncio
from dataclasses import dataclass, field


class RefusedError(Exception):
    """The engine says no. `kind` is context, body, busy, field or internal."""

    def __init__(self, kind, message, status=400):
        super().__init__(message)
        self.kind, self.message, self.status = kind, message, status


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One choice of one request. `max_tokens` None: as many as fit. `handoff`: what the client gave back."""

    tenant: str
    words: tuple[str, ...]
    max_tokens: int | None
    model: str
    seed: int = 0
    temperature: float = 0.0
    client_id: str | None = None
    stop: tuple[str, ...] = ()
    runs_on: bool = False
    wants_handoff: bool = False
    handoff: dict | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of an answer, with the words that stood beside it and their log-probabilities."""

    word: str
    top: tuple[tuple[str, float], ...]


@dataclass(slots=True, eq=False, kw_only=True)
class Row:
    """A job in the engine.

    `words` is what is computed of its prompt, `slots` how many slots its steps read, `prompt_tokens` what the
    client is told. `pages` is its block table, of which the first `matched` are the prefix cache's and those
    in `own` its own.
    """

    number: int
    job: Job
    words: list[str]
    slots: int
    prompt_tokens: int
    limit: int
    key: object
    pages: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    matched: list[int] = field(default_factory=list)
    published: list[int] = field(default_factory=list)
    chain: list[bytes] = field(default_factory=list)
    waits_for_ever: bool = False
    cached_tokens: int = 0
    made: list[str] = field(default_factory=list)
    answer: object = None
    seen: int = 0
    salt: int = 0
    first: str | None = None
    finish: str | None = None
    handoff: dict | None = None
    writer: asyncio.Task | None = None
    outbox: asyncio.Queue = field(default_factory=asyncio.Queue)
