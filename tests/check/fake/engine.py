"""The engine of the fake: admission, page leases, chunked prefill, and decode in batches.

Rules it keeps:
- A row's answer comes from the slots that its steps read, and from nothing else: `ToyModel` sees words, not
  requests. So a fault leaks by what it does to pages, rows or streams.
- Every decision is asked of `Rules`.
- `foreign_reads` counts slots of other tenants that a row has read: an oracle that tests of the fakes use, and
  nobody outside can see.
Times are those of the running loop. Pages are leased for prompt and answer at once, or, when the setup
preempts, as the row grows.
"""

import asyncio
import math
from contextlib import nullcontext

from tests.check.fake.batch import Decoder
from tests.check.fake.jobs import Piece, RefusedError, Row
from tests.check.fake.prefix import chain_of
from tests.check.fake.rules import Overlong
from tests.check.fake.vocabulary import PAD

CHUNK_S = 0.05  # prefill computes for so long at a stretch; then it is the next prompt's turn
PASS_TOKENS = 256
HANDOVER_S = 0.03
REST_WORDS = 24


class Engine(Decoder):
    """One model on one pool."""

    def __init__(self, setup, rules):
        super().__init__(setup, rules)
        self.handoffs = {}
        self.is_down = False
        self._numbers = 0
        self._turn, self._lease_turn = asyncio.Lock(), asyncio.Lock()
        self._freed, self.someone_left = asyncio.Event(), asyncio.Event()
        self._first_tokens, self._rest = {}, []

    # ---------------------------------------------------------------- admission
    def admit(self, job):
        """The job's row, or RefusedError; a server that crashes over it raises ConnectionError."""
        if self.is_down:
            raise ConnectionError("the server is down")
        if len(self.live) >= self.setup.queue_max:
            raise RefusedError("busy", "too many requests are waiting", 429)
        self._numbers += 1
        number = self._numbers
        self.tenants[number] = job.tenant
        key = self.rules.key_of(number, job.client_id)
        size = len(job.words)
        row = Row(
            number=number, job=job, words=list(job.words), slots=size, prompt_tokens=size, limit=0, key=key
        )
        self._fit(row)
        self.live[number] = self.tables[key] = row
        return row

    def _fit(self, row):
        limit, wanted = self.setup.limit_tokens, row.job.max_tokens
        size = len(row.words)
        if size + (wanted or 1) <= limit:
            row.limit = limit - size if wanted is None else wanted
            return
        what = self.rules.overlong(wanted)
        if what is Overlong.REFUSE or (size > self.setup.context_tokens and what is Overlong.PLACEHOLDER):
            raise RefusedError("context", str(size))
        row.limit = 256 if wanted is None else wanted
        if what is Overlong.CRASH:
            self._crash()
        elif what is Overlong.WAIT:
            row.waits_for_ever = True
        elif what is Overlong.PLACEHOLDER:
            row.words = [PAD]
        else:
            kept = min(size, self.rules.kept_tokens(limit))
            row.words = row.words[-kept:] if what is Overlong.KEEP_TAIL else row.words[:kept]
            row.slots = row.prompt_tokens = kept

    def _crash(self):
        self.is_down = True
        for row in self.live.values():
            row.outbox.put_nowait(ConnectionError("the server is down"))
        raise ConnectionError("the server is down")

    # ---------------------------------------------------------------- one row, from pages to pieces
    async def pieces(self, row):
        """The row's answer as Pieces, as they are made. Leaving early is a disconnect."""
        try:
            for word in self._take_rest():
                yield Piece(word, ())
            await self._begin(row)
            while (piece := await row.outbox.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            self._leave(row)

    async def _begin(self, row):
        if row.job.handoff is not None:
            self._take_over(row)
        else:
            await self._lease(row)
            row.writer = asyncio.ensure_future(self._compute(row))
            self._writers.add(row.writer)
            row.writer.add_done_callback(self._writers.discard)
            await asyncio.shield(row.writer)
            await self._hand_over(row)
        self._enter(row)

    async def _lease(self, row):
        """Wait, first come first served, for the row's pages."""
        size = self.setup.page_tokens
        self._match(row)
        tokens = row.slots + (0 if self.setup.preempts else min(row.limit, 4_096))
        needed = max(1, math.ceil(tokens / size)) - len(row.matched)
        async with self._lease_turn:
            while row.waits_for_ever or (pages := self._take(needed, row.number)) is None:
                self._freed.clear()
                await self._freed.wait()
        row.own, row.pages = pages, row.matched + pages
        for ordinal in range(len(row.matched), len(row.chain)):
            self.pool.histories[row.pages[ordinal]] = (row.chain[ordinal], row.words, ordinal * size)
        if self.prefixes and self.rules.publishes_early():
            self._publish(row)

    def _match(self, row):
        if self.prefixes is None or len(row.words) != row.slots or row.job.wants_handoff:
            return
        row.chain = chain_of(row.words, self.setup.page_tokens, row.job.model)
        domain = self.rules.domain(row.job.tenant)
        row.matched = self.prefixes.match(domain, row.words, row.chain)
        row.cached_tokens = len(row.matched) * self.setup.page_tokens
        if not self.rules.pins_match():
            self.pool.watched.update(row.matched)

    def _take(self, count, holder):
        missing = count - self.pool.free
        if missing > 0 and self.prefixes and self.prefixes.has_evictable(missing):
            for _ in range(missing):
                self.prefixes.evict()
        return self.pool.take(count, holder)

    def _publish(self, row):
        domain = self.rules.domain(row.job.tenant)
        first = len(row.matched)
        row.published = self.prefixes.publish(domain, row.words, row.chain, row.pages, first)

    async def _compute(self, row):
        """Compute the prompt in chunks, each written as it is complete."""
        clock, size = self.setup.clock, self.setup.page_tokens
        seconds = clock.prefill_s(len(row.words)) - clock.prefill_s(row.cached_tokens) + clock.a_s
        chunks = max(1, math.ceil(seconds / CHUNK_S))
        pages = math.ceil(len(row.words) / size)
        posted = self.rules.pages_posted(row.number, pages, len(self.live))
        done = len(row.matched)
        # Short prompts are computed beside each other, in one pass; long ones take turns.
        turn = nullcontext() if len(row.words) <= PASS_TOKENS else self._turn
        for chunk in range(1, chunks + 1):
            async with turn:
                await asyncio.sleep(seconds / chunks * self._longer())
            upto = max(done, len(row.matched) + (pages - len(row.matched)) * chunk // chunks)
            for ordinal in range(done, min(upto, posted)):
                self.pool.write(
                    row.pages[ordinal], 0, row.words[ordinal * size : (ordinal + 1) * size], row.number
                )
            done = upto

    async def _hand_over(self, row):
        """Prefill's first token goes to decode through a slot of a side channel."""
        slot = self.rules.first_token_slot(row.number)
        if slot != row.number:
            answer = self._answer(row)
            self._first_tokens[slot] = answer.words[0] if answer.words else ""
        await asyncio.sleep(HANDOVER_S)
        if slot != row.number:
            row.first = self._first_tokens[slot]
        if self.prefixes and row.chain and not row.published:
            self._publish(row)

    # ---------------------------------------------------------------- hand-offs that clients carry
    def _keep_handoff(self, row):
        """Keep a computed prompt for whoever brings its reference; returns the reference."""
        name = f"handoff-{row.number}"
        self.handoffs[name] = list(row.own)
        pages, row.own = row.own, []
        asyncio.get_running_loop().call_later(self.setup.lease_s, self._expire, name, pages)
        return {"remote_request_id": name, "remote_block_ids": list(row.pages), "remote_engine_id": "fake"}

    def _expire(self, name, pages):
        del self.handoffs[name]
        self._give(pages)

    def _take_over(self, row):
        reference = row.job.handoff
        is_expired = reference.get("remote_request_id") not in self.handoffs
        if not self.rules.takes_reference(is_expired=is_expired):
            raise RefusedError("internal", "the remote blocks are gone", 500)
        row.pages = [int(page) % self.pool.pages for page in reference.get("remote_block_ids", ())]

    async def _recompute(self, row):
        prompt = row.words[: row.slots]
        row.words, row.slots = prompt + row.made, row.slots + len(row.made)
        row.matched, row.published, row.chain, row.cached_tokens = [], [], [], 0
        async with self._lease_turn:
            while (
                pages := self._take(math.ceil((row.slots + 1) / self.setup.page_tokens), row.number)
            ) is None:
                self._freed.clear()
                await self._freed.wait()
        row.own = row.pages = pages
        await self._compute(row)
        row.words, row.slots = prompt, len(prompt)
        self._enter(row)

    # ---------------------------------------------------------------- ends
    def _end(self, row, finish):
        row.finish = finish
        if row in self.rows:
            self.rows.remove(row)
            self._left += 1
        self._kept.append((row.number, [*row.words, *row.made]))
        self._step_late(row)
        if row.job.wants_handoff:
            row.handoff = self._keep_handoff(row)
        row.outbox.put_nowait(None)
        self._free(row)

    def _leave(self, row):
        """The client has its answer, or is gone."""
        self.live.pop(row.number, None)
        if self.tables.get(row.key) is row:
            del self.tables[row.key]
        self.someone_left.set()
        if row.finish is not None:
            return
        row.finish = "abort"
        if row.writer is not None and not row.writer.done() and self.rules.writer_stops():
            row.writer.cancel()
        if row in self.rows:
            self.rows.remove(row)
            self._left += 1
            self._step_late(row)
        if self.rules.keeps_rest() and row.answer is not None:
            self._rest = row.answer.words[len(row.made) :][:REST_WORDS]
        self._free(row)

    def _free(self, row):
        """Pages that the prefix cache holds stay with it; all others go back."""
        self.pool.watched.difference_update(row.matched)
        if self.prefixes:
            self.prefixes.unpin(row.matched)
            is_written = row.writer is None or (row.writer.done() and not row.writer.cancelled())
            if is_written or self.rules.publishes_early():
                self.prefixes.release(row.published)
            else:
                self.prefixes.withdraw(row.published)
                row.published = []
        kept = set(row.published)
        pages, row.own, row.matched = [page for page in row.own if page not in kept], [], []
        self._give(pages)

    def _give(self, pages):
        self.pool.give(pages)
        self._freed.set()

    def _take_rest(self):
        rest, self._rest = self._rest, []
        return rest
