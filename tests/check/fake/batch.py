"""Decode in the fake: rows in a batch, step by step, each token from the slots that its row reads.

Every step asks `Rules` whose table a row reads, whose token it gets and whose limit ends it, and where padding
rows write. The pages themselves are the engine's (`_take`, `_free`).
"""

import asyncio
import random
from collections import deque

from tests.check.fake.jobs import Piece
from tests.check.fake.memory import NOBODY, Pool
from tests.check.fake.model import ToyModel
from tests.check.fake.prefix import Prefixes

HISTORY_WORDS = 48  # what keys and values of a page know of the text before it
KEPT_CONVERSATIONS = 8
DUMMIES = [" !"] * 8
BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64)


class Decoder:
    """The batch, and the state that it shares with the rest of the engine."""

    def __init__(self, setup, rules):
        self.setup, self.rules = setup, rules
        self.pool = Pool(setup.pool_tokens // setup.page_tokens, setup.page_tokens, order=setup.free_order)
        self.prefixes = Prefixes(self.pool, rules) if setup.prefix_cache else None
        self.model = ToyModel(seed=setup.seed, obedience=setup.obedience, rounding=setup.rounding)
        self.rows, self.live, self.tables, self.tenants = [], {}, {}, {}
        self.foreign_reads = self.preemptions = 0
        self._left = 0
        self._random = random.Random(setup.seed)
        self._places = {}
        self._kept = deque(maxlen=KEPT_CONVERSATIONS)
        self._loop_task, self._writers = None, set()

    def _enter(self, row):
        kept = self.rules.restores(row.number, len(self.rows) + 1, self._kept)
        if kept is not None:
            self._restore(row, self._kept[kept])
        row.salt = row.number if self.rows else 0
        row.answer = self._answer(row)
        row.seen = self.pool.foreign_writes
        self.rows.append(row)
        if self._loop_task is None or self._loop_task.done():
            self._loop_task = asyncio.ensure_future(self._decode())
            self._loop_task.add_done_callback(self._tell_all)

    def _restore(self, row, conversation):
        """Copy a conversation from the lower tier over the row's pages."""
        number, words = conversation
        size = self.setup.page_tokens
        row.slots = min(len(words), len(row.own) * size)
        row.pages = row.own
        for at in range(0, row.slots, size):
            self.pool.write(row.pages[at // size], 0, words[at : min(at + size, row.slots)], number)

    async def _decode(self):
        while self.rows:
            await asyncio.sleep(self.setup.clock.step_s * self._longer())
            self._step(self.rows[: self.setup.rows_max])

    def _longer(self):
        """A factor for a time: machines do not keep theirs."""
        return 1.0 + self.setup.jitter * self._random.random()

    def _tell_all(self, task):
        """A defect of the fake itself is everybody's error, and no silence."""
        if not task.cancelled() and task.exception() is not None:
            for row in self.live.values():
                row.outbox.put_nowait(task.exception())

    def _step(self, batch):
        self._pad(batch)
        sampled = [self._sample(at, row, batch) for at, row in enumerate(batch)]
        for at, row in enumerate(batch):
            if row not in self.rows:
                continue  # it was preempted in this very step
            word = sampled[self.rules.sampled_row(at, len(batch))]
            limit = batch[self.rules.limit_row(at, len(batch)) % len(batch)].limit
            self._advance(row, word, limit)

    def _sample(self, at, row, batch):
        """The next word of a row, None at its end."""
        other = batch[self.rules.table_row(at, len(batch), self._left) % len(batch)]
        if row.seen != self.pool.foreign_writes:
            row.answer, row.seen = self._answer(row), self.pool.foreign_writes
            row.answer = self._bent(row, row.answer)
        answer = row.answer if other is row else self._answer(row, other)
        position = len(row.made)
        if position == 0 and row.first is not None:
            return row.first
        words = answer.words
        if self.rules.garbles(len(batch)) and position < len(words) and (row.number + position) % 3 == 0:
            return self.model.slip(row.number, position)
        if position < len(words):
            return words[position]
        return words[position % len(words)] if row.job.runs_on and words else None

    def _answer(self, row, other=None):
        """What the model makes of the slots that the row reads."""
        table = other or self.tables.get(row.key, row)
        count = self.rules.attended(table.slots, self.setup.page_tokens)
        words, writers = self.pool.read(table.pages, count)
        own = row.job.tenant
        foreign = {writer for writer in set(writers) if writer and self.tenants[writer] != own}
        self.foreign_reads += sum(writer in foreign for writer in writers) if foreign else 0
        return self.model.answer(self._heard(table, words), job=row.job, salt=row.salt)

    def _bent(self, row, answer):
        """An answer goes another way once somebody else's word stands among those that were said."""
        size = self.setup.page_tokens
        said, _ = self.pool.read(row.pages, min(row.slots + len(row.made), len(row.pages) * size))
        said = said[row.slots :]
        if said == row.made[: len(said)]:
            return answer
        return self.model.go_on(answer, row.made, said)

    def _heard(self, table, words):
        """The words, and what matched pages know of a text before them that is not this one's."""
        size, heard = self.setup.page_tokens, None
        for ordinal, page in enumerate(table.matched):
            history = self.pool.histories[page]
            if history is not None and history[0] != table.chain[ordinal]:
                _, text, start = history
                heard = words if heard is None else heard
                at = ordinal * size
                heard = [*heard[:at], *text[max(0, start - HISTORY_WORDS) : start], *heard[at:]]
        return words if heard is None else heard

    def _advance(self, row, word, limit):
        if word is None:
            return self._end(row, "stop")
        if not self._append(row, word):
            return None
        top = self.model.top(row.answer, len(row.made), word)
        row.made.append(word)
        if row.job.stop:
            said = "".join(row.made)
            met = [said.index(stop) for stop in row.job.stop if stop in said]
            if met:
                word = word[: max(0, len(word) - (len(said) - min(met)))]
                row.outbox.put_nowait(Piece(word, top))
                return self._end(row, "stop")
        live = [other.number for other in self.rows]
        target = self.live.get(self.rules.addressee(row.number, live), row)
        target.outbox.put_nowait(Piece(word, top))
        if len(row.made) >= limit:
            self._end(row, "length")
        return None

    def _append(self, row, word):
        """Write a token's slot; False when the row had to make room first."""
        at = row.slots + len(row.made)
        ordinal, offset = divmod(at, self.setup.page_tokens)
        if ordinal >= len(row.pages) and row.job.handoff is None and not self._grow(row):
            return False
        if ordinal < len(row.pages):
            self.pool.write(row.pages[ordinal], offset, [word], row.number)
        return True

    def _grow(self, row):
        pages = self._take(1, row.number)
        if pages is None:
            self._preempt(max(self.rows, key=lambda other: other.number))
            return False
        row.own, row.pages = row.own + pages, row.pages + pages
        return True

    def _preempt(self, row):
        """The row gives its pages back and is computed again, what it made included."""
        self.preemptions += 1
        self.rows.remove(row)
        self._free(row)
        again = asyncio.ensure_future(self._recompute(row))
        self._writers.add(again)
        again.add_done_callback(self._writers.discard)
        row.writer = again

    def _pad(self, batch):
        """Padding rows have page 0 for a block table, and what is left of the inputs of who was there before."""
        bucket = next((size for size in BUCKETS if size >= len(batch)), len(batch))
        for at in range(len(batch), bucket):
            words, number = self._places.get(at, (DUMMIES, NOBODY))
            if self.rules.pads_over_page_zero():
                self.pool.write(0, 0, [*words[:8], *DUMMIES], number)
        self._places.update((at, (row.words[:8], row.number)) for at, row in enumerate(batch))

    def _step_late(self, row):
        """Two steps that were launched before the row ended write into a page that is not its any more."""
        delay = self.rules.late_steps()
        ordinal, offset = divmod(row.slots + len(row.made), self.setup.page_tokens)
        if delay and row.made and ordinal < len(row.pages):
            for at in (offset, offset + 1):
                where = row.pages[ordinal], at % self.setup.page_tokens, [row.made[-1]], row.number
                # What was launched lands in its time, whether anybody computes then or not.
                asyncio.get_running_loop().call_later(
                    delay * self.setup.clock.step_s, self.pool.write, *where
                )
