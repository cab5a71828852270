"""What a prefill node does to the bytes of its pages: check ownership, seal what is full, stage batches.

A page is digested once, when it is full or when the prompt ends in it, after its unused slots were
zeroed; a prefix page goes to many leases under that one digest. Below the level `sealed` no digest is
taken and trailers are blank, but unused slots are zeroed all the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kvfence.kv import FenceLevel, PageSealer, Pool, page_indices, scrub_pages
from kvfence.protocol import CORRECT, Decisions, PageLedger, PageState, commands
from kvfence.protocol.words import LeaseId, PageRef
from kvfence.transport import TRAILER_BYTES, WriteBatch


@dataclass(slots=True)
class _Prompt:
    """A prompt's pages, of which the first `sealed_pages` are sealed (pinned prefix pages from the start)."""

    refs: tuple[PageRef, ...]
    pages: npt.NDArray[np.intp]
    epochs: npt.NDArray[np.uint64]
    owner: int
    sealed_pages: int


class PrefillPages:
    """The fence's hands on one prefill pool."""

    def __init__(
        self, pool: Pool, ledger: PageLedger, *, level: FenceLevel, decisions: Decisions = CORRECT
    ) -> None:
        self._pool, self._level = pool, level
        self._zeroes, self._is_guarded = decisions.zeroes_unused_slots(), decisions.guards_steps()
        self._page_tokens = pool.layout.page_tokens
        self._sealer = PageSealer(pool, zeroes=self._zeroes) if level.seals_pages else None
        self._epochs = np.frombuffer(ledger.epoch, np.uint64)
        self._owners = np.frombuffer(ledger.owner, np.uint64)
        self._pins = np.frombuffer(ledger.pins, np.uint32)
        self._states = np.frombuffer(ledger.state, np.uint8)
        self._prompts: dict[LeaseId, _Prompt] = {}

    def begin(self, command: commands.StartPrefill) -> None:
        """Pages of a prompt that is about to be computed."""
        self._prompts[command.lease] = _Prompt(
            refs=command.pages,
            pages=page_indices(command.pages),
            epochs=np.fromiter((ref.epoch for ref in command.pages), np.uint64, len(command.pages)),
            owner=command.owner,
            sealed_pages=command.cached_tokens // self._page_tokens,
        )

    def leave(self, lease: LeaseId) -> None:
        """No later step touches the prompt's pages."""
        self._prompts.pop(lease, None)

    def lost_pages(self, lease: LeaseId) -> tuple[int, ...]:
        """Pages of the prompt that are not held any more (law 1), to be asked before and after each chunk.

        A page is held under its epoch by its owner, or as a sealed page that is pinned.
        """
        prompt = self._prompts.get(lease)
        if prompt is None or not self._is_guarded:
            return ()
        pages = prompt.pages
        pinned = (self._states[pages] == PageState.SEALED) & (self._pins[pages] > 0)
        held = (self._epochs[pages] == prompt.epochs) & ((self._owners[pages] == prompt.owner) | pinned)
        return tuple(pages[~held].tolist())

    def seal_until(self, lease: LeaseId, tokens_done: int, *, last: bool) -> None:
        """Seal every page that is full now, and the partly filled one when the prompt ends in it."""
        prompt = self._prompts.get(lease)
        if prompt is None:
            return
        full, rest = divmod(tokens_done, self._page_tokens)
        for ref in prompt.refs[prompt.sealed_pages : full]:
            self._seal(ref, self._page_tokens)
        prompt.sealed_pages = max(prompt.sealed_pages, full)
        if last and rest:
            self._seal(prompt.refs[full], rest)
            prompt.sealed_pages = full + 1

    def _seal(self, ref: PageRef, valid_tokens: int) -> None:
        if self._sealer is not None:
            self._sealer.seal_page(ref, valid_tokens)
        elif self._zeroes and valid_tokens < self._page_tokens:
            self._pool.zero_slots(ref.page, valid_tokens)

    def stage(self, command: commands.PostBatch, key: bytes) -> WriteBatch:
        """A batch with the trailers that are to stand in the target."""
        if self._sealer is None:
            trailers = bytes(TRAILER_BYTES * len(command.targets))
        else:
            trailers = self._sealer.stage_trailers(
                command.lease,
                key,
                sources=command.sources,
                targets=command.targets,
                first_ordinal=command.first_ordinal,
            )
        return WriteBatch(
            lease=command.lease,
            batch=command.batch,
            sources=tuple(ref.page for ref in command.sources),
            targets=command.targets,
            trailers=trailers,
        )

    def freed(self, pages: Sequence[int]) -> None:
        """Pages became free."""
        if self._level.scrubs_pages:
            scrub_pages(self._pool, pages)
