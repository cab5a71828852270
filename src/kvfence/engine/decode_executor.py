"""Decode rows: which token each is at, what it may still make, and one forward pass over a batch of them.

The executor owns the block tables that steps read. Ownership of pages is not decided here: the node asks
the core, checks each step with the guard, and tells the executor what to start, grow and stop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from kvfence.engine.decode_schedule import DecodeSchedule
from kvfence.engine.model import DecodeRow, PagedModel
from kvfence.engine.pool_views import PoolViews
from kvfence.engine.sampler import BadLogitsError, Sampled, SampleRow, sample
from kvfence.engine.sampling import SamplingParams
from kvfence.protocol import CORRECT, Decisions
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import AttemptId, EndReason, LeaseId, PageRef, Peer


@dataclass(slots=True)
class Row:
    """One running request. `position` is where `last_token` stands; its KV is written by the next step."""

    lease: LeaseId
    attempt: AttemptId
    router: Peer
    sampling: SamplingParams
    pages: list[PageRef]
    position: int
    last_token: int
    left_tokens: int
    cached_tokens: int = 0
    prompt_tokens: Sequence[int] = ()
    output_counts: dict[int, int] = field(default_factory=dict)

    @property
    def block_table(self) -> list[int]:
        """Page numbers in order."""
        return [ref.page for ref in self.pages]


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step made of one row: a token, or None when its logits were no numbers."""

    row: Row
    sampled: Sampled | None


class DecodeExecutor:
    """The rows of one decode node and the model that steps them."""

    def __init__(
        self,
        model: PagedModel,
        views: PoolViews,
        *,
        page_tokens: int,
        max_batch: int,
        decisions: Decisions = CORRECT,
    ) -> None:
        self._model, self._views, self._page_tokens, self._decisions = model, views, page_tokens, decisions
        self._eos = frozenset(model.eos_token_ids)
        self.rows: dict[LeaseId, Row] = {}
        self.schedule = DecodeSchedule(max_batch)

    def start(self, row: Row) -> None:
        """Let the row be scheduled."""
        invariant(row.lease not in self.rows, f"{row.lease} is started once")
        self.rows[row.lease] = row
        self.schedule.add(row.lease)

    def stop(self, lease: LeaseId) -> None:
        """Forget the row; no later step touches its pages."""
        self.rows.pop(lease, None)
        self.schedule.remove(lease)

    def grow(self, lease: LeaseId, page: PageRef) -> None:
        """Append a page to the block table and let the row go on."""
        row = self.rows.get(lease)
        if row is not None:
            row.pages.append(page)
            self.schedule.resume(lease)

    def needs_page(self, row: Row) -> bool:
        """Whether the slot of the row's next step lies beyond its block table."""
        return row.position >= len(row.pages) * self._page_tokens

    def plan(self) -> tuple[list[Row], list[LeaseId]]:
        """The rows of the next step, and those that cannot step because they need a page first."""
        ready, wanting = [], []
        for lease in self.schedule.rows_for_step():
            row = self.rows[lease]
            if self.needs_page(row):
                wanting.append(lease)
            else:
                ready.append(row)
        for lease in wanting:
            self.schedule.pause(lease)
        return ready, wanting

    def forward(self, rows: Sequence[Row]) -> Tensor:
        """One forward pass: writes each row's slot at its position, returns float32 logits [rows, vocab]."""
        return self._model.decode(
            self._views,
            [DecodeRow(row.last_token, row.position, self._table(rows, i)) for i, row in enumerate(rows)],
        )

    def _table(self, rows: Sequence[Row], index: int) -> list[int]:
        """Pages that the row at `index` reads and writes: its own, as long as decisions are right.

        Another row's table is made as wide as this row needs, as it would be in one padded tensor.
        """
        own, source = rows[index].block_table, self._decisions.table_row(index, len(rows))
        if source == index:
            return own
        other = rows[source].block_table
        return other[: len(own)] + own[len(other) :]

    def advance(self, rows: Sequence[Row], logits: Tensor) -> list[Stepped]:
        """Sample a token for each row and move the rows on by it."""
        asked = [
            SampleRow(row.sampling, row.position + 1, row.prompt_tokens, row.output_counts) for row in rows
        ]
        return [
            Stepped(row, self._accept(row, sampled))
            for row, sampled in zip(rows, sample_finite(logits, asked), strict=True)
        ]

    def _accept(self, row: Row, sampled: Sampled | None) -> Sampled | None:
        if sampled is not None:
            row.position += 1
            row.last_token = sampled.token
            count_token(row, sampled.token)
        return sampled

    def end_of(self, row: Row) -> EndReason | None:
        """Why the row is complete after its last token; None when it goes on."""
        if row.last_token in row.sampling.stop_token_ids:
            return EndReason.STOP
        if row.last_token in self._eos and not row.sampling.ignore_eos:
            return EndReason.STOP
        return EndReason.LENGTH if row.left_tokens <= 0 else None


def count_token(row: Row, token: int) -> None:
    """Book one made token."""
    row.left_tokens -= 1
    row.output_counts[token] = row.output_counts.get(token, 0) + 1


def sample_finite(logits: Tensor, rows: Sequence[SampleRow]) -> list[Sampled | None]:
    """Sample, with None for rows whose logits are no numbers: those fail, the others go on."""
    try:
        return list(sample(logits, rows))
    except BadLogitsError as error:
        bad = frozenset(error.rows)
    good = [index for index in range(len(rows)) if index not in bad]
    sampled: Mapping[int, Sampled] = dict(
        zip(good, sample(logits[good], [rows[index] for index in good]), strict=True)
    )
    return [sampled.get(index) for index in range(len(rows))]
