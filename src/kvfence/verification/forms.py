"""Forms of what lies around the cores: messages, pages, writes, rows, clients.

Each function writes one value into a `Sink`, whole: two values with the same form behave alike. What is left
out says why. Content is written as (request, position): asks are functions of these.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kvfence.protocol import events, hash_tokens
from kvfence.protocol.words import (
    Done,
    End,
    Failed,
    LeaseId,
    Manifest,
    Outcome,
    Peer,
    Refusal,
    Refused,
)
from kvfence.verification.parts import Sink
from kvfence.world import Ask, Client, Job, Page, Pass, Row, Slot, Write
from kvfence.world.memory import digest_of
from kvfence.world.requests import ANSWERS


class Content:
    """What of prompts and answers a core can hold: hashes and first tokens, as (request, position)."""

    def __init__(self, asks: Mapping[int, Ask]) -> None:
        self.asks = asks
        self._of_hash: dict[bytes, tuple[int, int]] = {}
        for request, ask in asks.items():
            for n in range(1, len(ask.prompt) + ask.max_tokens + 2):
                self._of_hash.setdefault(hash_tokens(ask.tokens(n)), (request, n))

    def hash(self, sink: Sink, token_hash: bytes) -> None:
        """Write the hash of a prompt."""
        known = self._of_hash.get(token_hash)
        if known is None:
            sink.put("bytes", token_hash.hex())
        else:
            sink.put("hash", known[1])
            sink.request(known[0])

    def token(self, sink: Sink, token: int | None) -> None:
        """Write one token."""
        if token is not None and token // ANSWERS in self.asks:
            sink.put("answer", token % ANSWERS)
            sink.request(token // ANSWERS)
        else:
            sink.put("token", token)

    def tokens(self, sink: Sink, request: int, tokens: tuple[int, ...]) -> None:
        """Write a prompt: its length alone where it is the request's own."""
        ask = self.asks.get(request)
        is_own = ask is not None and ask.tokens(len(tokens)) == tokens
        sink.put(len(tokens), None if is_own else tokens)


# ---------------------------------------------------------------- words
def put_refusal(sink: Sink, refusal: Refusal | None) -> None:
    """Write a refusal with its numbers."""
    if refusal is None:
        sink.put(None)
    else:
        sink.put(refusal.code.value, refusal.needed_tokens, refusal.limit_tokens)


def put_end(sink: Sink, end: End) -> None:
    """Write an end. `detail` is for people: nothing depends on it."""
    integrity = None if end.integrity is None else end.integrity.value
    sink.put(end.reason.value, integrity, end.next_position)
    put_refusal(sink, end.refusal)


def put_manifest(sink: Sink, content: Content, manifest: Manifest | None) -> None:
    """Write what a writer claims."""
    if manifest is None:
        sink.put(None)
        return
    sink.lease(manifest.lease)
    sink.peer(manifest.writer)
    sink.put(manifest.tokens, manifest.pages, manifest.first_position)
    content.hash(sink, manifest.token_hash)
    content.token(sink, manifest.first_token)


def put_outcome(sink: Sink, content: Content, outcome: Outcome | None) -> None:
    """Write how a lease ended for its writer."""
    match outcome:
        case Done():
            sink.put("done")
            put_manifest(sink, content, outcome.manifest)
        case Refused():
            sink.put("refused")
            put_refusal(sink, outcome.refusal)
        case Failed():
            sink.put("failed", outcome.failure.value)
        case None:
            sink.put(None)


# ---------------------------------------------------------------- messages
def put_message(sink: Sink, content: Content, message: Any) -> None:
    """Write a message on a wire."""
    sink.put(type(message).__name__)
    sink.peer(getattr(message, "sender", None))
    match message:
        case events.Hello():
            sink.put(message.role.value, message.pool_tokens, message.free_pages, message.draining)
        case events.Reserved():
            sink.attempt(message.attempt)
            sink.lease(message.lease)
            sink.refs(message.sender.node, message.pages)
        case events.ReserveRefused():
            sink.attempt(message.attempt)
            put_refusal(sink, message.refusal)
        case events.TokenMade():
            sink.attempt(message.attempt)
            sink.put(message.position)
        case events.AttemptEnded():
            sink.attempt(message.attempt)
            put_end(sink, message.end)
        case events.Reserve():
            sink.attempt(message.attempt)
            sink.peer(message.writer)
            sink.put(message.tokens, message.max_tokens)
            content.hash(sink, message.token_hash)
        case events.Abort():
            sink.attempt(message.attempt)
        case events.Closed():
            sink.lease(message.lease)
            put_outcome(sink, content, message.outcome)
        case events.Prefill():
            sink.attempt(message.attempt)
            sink.peer(message.decode)
            sink.lease(message.lease)
            sink.refs(message.decode.node, message.pages)
            content.tokens(sink, message.attempt.request, message.tokens)
            put_domain(sink, content, message.attempt.request, message.domain)
        case events.Close():
            sink.lease(message.lease)
        case events.LowestLive():
            sink.bound(message.sender.incarnation, message.sequence)
        case _:
            raise TypeError(f"a {type(message).__name__} is no message: give it a form")


def put_domain(sink: Sink, content: Content, request: int, domain: str) -> None:
    """Write a domain, unless it is the one that the request's tenant always has."""
    ask = content.asks.get(request)
    sink.put(None if ask is not None and ask.tenant == domain else domain)


# ---------------------------------------------------------------- memory
def _put_writer(sink: Sink, pool: str, lease: LeaseId | int) -> None:
    if isinstance(lease, LeaseId):
        sink.put("lease")
        sink.lease(lease)
    else:
        sink.put("owner")
        sink.owner(pool, lease)


def put_slots(sink: Sink, pool: str, slots: Iterable[Slot | None]) -> None:
    """Write slots with their provenance."""
    for slot in slots:
        if slot is None:
            sink.put(None)
        else:
            sink.put(slot.position)
            sink.request(slot.request)
            _put_writer(sink, pool, slot.lease)


def put_page(sink: Sink, pool: str, page: int, content: Page | None) -> None:
    """Write a page: trailer and slots. The digest is left out where it is that of the slots beside it."""
    if content is None:
        sink.put("no pool")
        return
    sink.put("page")
    _put_seal(sink, pool, page, content.seal, content.slots)
    put_slots(sink, pool, content.slots)


def _put_seal(sink: Sink, pool: str, page: int, seal: Any, slots: tuple[Slot | None, ...] | None) -> None:
    if seal is None:
        sink.put(None)
        return
    _put_writer(sink, pool, seal.lease)
    sink.epoch(pool, page, seal.epoch)
    sink.put(seal.ordinal, seal.valid)
    if seal.digest is None:
        sink.put("stamp")
    elif slots is not None and seal.digest == digest_of(slots):
        sink.put("fits")
    else:
        sink.put("digest")
        for known in seal.digest:
            sink.put(None if known is None else known[1])
            if known is not None:
                sink.request(known[0])


def put_write(sink: Sink, key: tuple[Peer, LeaseId, int], write: Write) -> None:
    """Write a batch of one-sided writes."""
    source, target = key[0].node, write.decode.node
    sink.put("write", key[2], write.at, write.part, write.is_stopped, write.is_orphan)
    sink.peer(key[0])
    sink.lease(key[1])
    sink.peer(write.decode)
    sink.request(write.request)
    sink.refs(source, write.sources)
    sink.refs(target, write.targets)
    for ref, trailer in zip(write.targets, write.trailers, strict=True):
        _put_seal(sink, target, ref.page, trailer, None)
    for slots in write.buffered or ():
        sink.put("buffered")
        put_slots(sink, source, slots)


# ---------------------------------------------------------------- rows, prompts, passes
def put_row(sink: Sink, pool: str, row: Row) -> None:
    """Write a row of a decode node."""
    sink.attempt(row.attempt)
    sink.peer(row.router)
    sink.refs(pool, row.table)
    sink.put(row.received_pages, row.position)


def put_job(sink: Sink, pool: str, job: Job) -> None:
    """Write a prompt of a prefill node."""
    sink.request(job.request)
    sink.refs(pool, job.table)
    sink.owner(pool, job.owner)
    sink.put(job.tokens, job.prefix_pages, job.computed)


def put_pass(sink: Sink, pool: str, chunk: Pass) -> None:
    """Write one row, or one chunk, of a launched pass."""
    sink.lease(chunk.lease)
    sink.request(chunk.request)
    sink.refs(pool, chunk.table)
    sink.put(chunk.start, chunk.end)
    _put_writer(sink, pool, chunk.owner)


def put_client(sink: Sink, client: Client | None, home: Peer | None) -> None:
    """Write what a client has heard. How it ended matters to nobody: only that it has."""
    if client is None:
        sink.put("not yet")
        return
    is_over = client.end is not None or client.is_lost
    sink.put("client", client.delivered, client.end is None, client.is_lost)
    sink.peer(home)
    sink.bare = "over" if is_over else None
