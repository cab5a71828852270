"""What a prefill node's process does in a world: chunks, seals, batches of one-sided writes, Closed.

Rules: one pass is in flight at a time; a digest is taken once, when its page is sealed, and staged with the
batch. When the pages themselves are read, and where they land, is `transfer.py`'s.
"""

from dataclasses import replace
from typing import ClassVar

from kvfence.protocol import commands, events
from kvfence.protocol.vocabulary import Event
from kvfence.protocol.words import LeaseId, PageRef, Peer
from kvfence.world.mail import Mail
from kvfence.world.memory import Page, Seal, Slot, digest_of, put
from kvfence.world.oracle import Kind, judge_reads
from kvfence.world.records import Job, Link, Pass, Write

THE_STEP = 1  # at most one forward pass is in flight on a node, so one number names it


class PrefillSide(Mail):
    """Commands of PrefillCore, and the forward passes of its executor."""

    CARRY_OUT: ClassVar[dict[type, str]] = {
        **Mail.CARRY_OUT,
        commands.SetTimer: "_set_timer",
        commands.PagesFreed: "_nothing",
        commands.StartPrefill: "_start_prefill",
        commands.StopPrefill: "_stop_prefill",
        commands.PostBatch: "_post_batch",
        commands.StopPosting: "_stop_posting",
        commands.SendClosed: "_send_closed",
        commands.DestroyConnection: "_destroy_connection",
    }

    # ------------------------------------------------------------ commands
    def _start_prefill(self, peer: Peer, command: commands.StartPrefill, _event: Event) -> None:
        self.jobs[peer, command.lease] = Job(
            request=command.attempt.request,
            tokens=len(command.tokens),
            table=command.pages,
            owner=command.owner,
            prefix_pages=command.cached_tokens // self.config.page_tokens,
            computed=command.cached_tokens,
        )

    def _stop_prefill(self, peer: Peer, command: commands.StopPrefill, _event: Event) -> None:
        self.jobs.pop((peer, command.lease), None)

    def _post_batch(self, peer: Peer, command: commands.PostBatch, _event: Event) -> None:
        if self.links.get((peer, command.decode)) is not Link.UP:
            self.tell(peer, events.WriteFailed(command.lease, command.batch, quiet=True))
            return
        core = self.prefill_core(peer)
        if core is None:
            return
        self.writes[peer, command.lease, command.batch] = Write(
            decode=command.decode,
            request=core.leases[command.lease].attempt.request,
            sources=command.sources,
            targets=command.targets,
            trailers=self._trailers(peer, command, len(core.leases[command.lease].tokens)),
        )

    def _trailers(self, peer: Peer, command: commands.PostBatch, tokens: int) -> tuple[Seal, ...]:
        """Stage what will stand in the target pages; each digest was taken once, when its page was sealed."""
        pool, staged = self.pools[peer], []
        pairs = zip(command.sources, command.targets, strict=True)
        for ordinal, (source, target) in enumerate(pairs, command.first_ordinal):
            seal = pool[source.page].seal
            valid = min(self.config.page_tokens, tokens - ordinal * self.config.page_tokens)
            digest = None if seal is None else seal.digest
            staged.append(Seal(command.lease, target.epoch, ordinal, valid, digest))
        return tuple(staged)

    def _stop_posting(self, peer: Peer, command: commands.StopPosting, _event: Event) -> None:
        key = (peer, command.lease, command.batch)
        write = self.writes.get(key)
        if write is not None:
            self.writes[key] = replace(write, is_stopped=True)

    def _send_closed(self, peer: Peer, command: commands.SendClosed, _event: Event) -> None:
        self.jobs.pop((peer, command.lease), None)
        self.send(peer, command.decode, events.Closed(peer, command.lease, command.outcome))

    def _destroy_connection(self, peer: Peer, command: commands.DestroyConnection, _event: Event) -> None:
        self.links[peer, command.peer] = Link.FALLING

    # ------------------------------------------------------------ forward passes
    def _chunk_ready(self, peer: Peer) -> tuple[LeaseId, Job] | None:
        """The prompt whose turn it is: first come, first computed."""
        for (node, lease), job in self.jobs.items():
            if node == peer and job.computed < job.tokens:
                return lease, job
        return None

    def _launch_prefill(self, peer: Peer) -> None:
        found = self._chunk_ready(peer)
        if found is None:
            return
        lease, job = found
        if self.decisions.guards_steps() and not self._owns_all(peer, lease, job):
            self._fail_job(peer, lease)
            return
        end = min(job.tokens, job.computed + self.config.chunk_tokens)
        chunk = Pass(lease, job.request, job.table, job.computed, end, job.owner)
        self.passes[peer] = (chunk,)
        self._judge_chunk(peer, chunk)
        self.tell(peer, events.StepLaunched(THE_STEP, (lease,)))

    def _owns_all(self, peer: Peer, lease: LeaseId, job: Job) -> bool:
        core = self.prefill_core(peer)
        if core is None or lease not in core.leases:
            return False
        ledger = core.ledger
        own = job.table[job.prefix_pages :]
        shared = job.table[: job.prefix_pages]
        return all(ledger.owns(job.owner, ref) for ref in own) and all(
            ledger.epoch[ref.page] == ref.epoch for ref in shared
        )

    def _fail_job(self, peer: Peer, lease: LeaseId) -> None:
        self.jobs.pop((peer, lease), None)
        self.caught("guard")
        self.tell(peer, events.ExecutorFailed(lease, "pages are not the lease's own"))

    def _judge_chunk(self, peer: Peer, chunk: Pass) -> None:
        fault = judge_reads(self.pools[peer], chunk.table, self.asks, chunk.request, chunk.start, None)
        if fault is not None:
            self.find(fault[0], peer, fault[1])

    def _retire_prefill(self, peer: Peer) -> None:
        (chunk,) = self.passes.pop(peer)
        self._judge_chunk(peer, chunk)
        self._write_chunk(peer, chunk)
        self.tell(peer, events.StepRetired(THE_STEP))
        job = self.jobs.get((peer, chunk.lease))
        if job is None or job.owner != chunk.owner:
            return
        if self.decisions.guards_steps() and not self._owns_all(peer, chunk.lease, job):
            self._fail_job(peer, chunk.lease)
            return
        is_last = chunk.end == job.tokens
        self._seal_pages(peer, job, chunk, is_last=is_last)
        if is_last:
            del self.jobs[peer, chunk.lease]
        else:
            self.jobs[peer, chunk.lease] = job.computed_to(chunk.end)
        first = self.asks[job.request].token_at(job.tokens) if is_last else None
        self.tell(peer, events.ChunkComputed(chunk.lease, chunk.end, first))

    def _write_chunk(self, peer: Peer, chunk: Pass) -> None:
        """The pass writes where its block table said at launch, whatever has become of those pages."""
        core, pool, size = self.prefill_core(peer), self.pools[peer], self.config.page_tokens
        for position in range(chunk.start, chunk.end):
            ref = chunk.table[position // size]
            if core is not None and not core.ledger.owns(int(chunk.owner), ref):  # type: ignore[arg-type]
                self.find(Kind.LATE_STEP, peer, f"{chunk.lease} computes into {ref}, which it has no longer")
            page = pool[ref.page]
            slot = Slot(chunk.request, position, chunk.owner)
            pool[ref.page] = Page(page.seal, put(page.slots, position % size, slot))

    def _seal_pages(self, peer: Peer, job: Job, chunk: Pass, *, is_last: bool) -> None:
        pool, size = self.pools[peer], self.config.page_tokens
        first = chunk.start // size
        after = len(job.table) if is_last else chunk.end // size
        for ordinal in range(first, after):
            self._seal_page(pool, job, ordinal, min(size, job.tokens - ordinal * size))

    def _seal_page(self, pool: list[Page], job: Job, ordinal: int, valid: int) -> None:
        ref: PageRef = job.table[ordinal]
        slots = pool[ref.page].slots
        if valid < len(slots) and self.decisions.zeroes_unused_slots():
            slots = (*slots[:valid], *(None,) * (len(slots) - valid))
        pool[ref.page] = Page(Seal(job.owner, ref.epoch, ordinal, valid, digest_of(slots)), slots)
