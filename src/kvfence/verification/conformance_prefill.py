"""The pages and promises of a prefill node: sources outlive their writes, Closed is said once and kept.

Rules, from laws 3, 4 and 8: an own page is leased under its next epoch and by one lease at a time; it comes
home with its lease, when no launched pass touches it and no batch reads it. A page that the prefix index
took stays until it is evicted, which nobody may use it then. Closed is said of a lease when no batch of it
can land any more, always with the same outcome, and nothing is computed or posted for it after that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique

from kvfence.protocol import commands, events
from kvfence.protocol.trace import show
from kvfence.protocol.words import Done, LeaseId, PageRef, Peer
from kvfence.verification.conformance_flight import Flight
from kvfence.verification.conformance_rows import Found, name_key
from kvfence.verification.conformance_steps import Step, ViolationKind


@unique
class _Batch(Enum):
    """What can still come of a batch."""

    POSTED = "posted"
    LOST = "lost"  # given up without proof: it may be read, and land
    UNPROVEN = "unproven"  # its connection is gone: it may land


@dataclass(slots=True)
class _Lease:
    decode: Peer
    pages: tuple[PageRef, ...]
    own: set[int]
    published: set[int] = field(default_factory=set)
    batches: dict[int, _Batch] = field(default_factory=dict)
    posted_pages: int = 0
    came_home: bool = False


class PrefillPageCheck:
    """Owners and epochs of one pool, what reads them, and what was said to be closed."""

    def __init__(self, page_tokens: int) -> None:
        self._page_tokens = page_tokens
        self._flight = Flight()
        self._leases: dict[LeaseId, _Lease] = {}
        self._owner: dict[int, LeaseId] = {}
        self._users: dict[int, set[LeaseId]] = {}  # by page, prefix pages too
        self._indexed: set[int] = set()
        self._epoch: dict[int, int] = {}
        self._said: dict[LeaseId, object] = {}

    def take(self, step: Step) -> Found:
        """Look at one step; yield what is wrong with it."""
        yield from self._flight.take(step.event)
        self._hear(step.event)
        for row in step.rows:
            lease = self._leases.get(row.key) if isinstance(row.key, LeaseId) else None
            if lease is not None and row.fact == "QUIET":
                lease.came_home = True
        for command in step.commands:
            yield from self._obey(step, command)
        yield from self._publish(step.published)
        yield from self._come_home()

    # ------------------------------------------------------------ what the node was told
    def _hear(self, event: object) -> None:
        match event:
            case events.WriteCompleted():
                self._batches(event.lease).pop(event.batch, None)
            case events.WriteFailed() if event.quiet:
                self._batches(event.lease).pop(event.batch, None)
            case events.WriteFailed() if event.batch in self._batches(event.lease):
                self._batches(event.lease)[event.batch] = _Batch.LOST
            case events.ConnectionDestroyed():
                for lease in self._leases.values():
                    if lease.decode == event.peer:
                        lease.batches = dict.fromkeys(lease.batches, _Batch.UNPROVEN)
            case events.Reconnected():
                for lease in self._leases.values():
                    if lease.decode == event.peer:
                        lease.batches = {b: s for b, s in lease.batches.items() if s is not _Batch.UNPROVEN}

    def _batches(self, name: LeaseId) -> dict[int, _Batch]:
        lease = self._leases.get(name)
        return {} if lease is None else lease.batches

    # ------------------------------------------------------------ what it did
    def _obey(self, step: Step, command: object) -> Found:
        match command:
            case commands.StartPrefill():
                yield from self._start(step, command)
            case commands.PostBatch():
                yield from self._post(command)
            case commands.SendClosed():
                yield from self._close(command)
            case commands.PagesFreed():
                for page in command.pages:
                    yield from self._free(page)

    def _start(self, step: Step, command: commands.StartPrefill) -> Found:
        if command.lease in self._said:
            yield ViolationKind.CLOSED, f"{name_key(command.lease)} is computed, and was said to be closed"
        if not isinstance(step.event, events.Prefill):
            yield ViolationKind.CLOSED, f"{name_key(command.lease)} is computed without a Prefill"
            return
        shared = command.cached_tokens // self._page_tokens
        own = command.pages[shared:]
        lease = _Lease(step.event.decode, command.pages, {ref.page for ref in own})
        self._leases[command.lease] = lease
        for ref in command.pages:
            self._users.setdefault(ref.page, set()).add(command.lease)
        for ref in command.pages[:shared]:
            if ref.page not in self._indexed or self._epoch.get(ref.page) != ref.epoch:
                yield (
                    ViolationKind.LEASED,
                    f"page {ref.page} is used as a prefix, and no sealed page of the index",
                )
        for ref in own:
            if ref.page in self._owner or ref.page in self._indexed:
                yield (
                    ViolationKind.LEASED,
                    f"page {ref.page} is leased to {name_key(command.lease)} and was not free",
                )
            if ref.epoch != self._epoch.get(ref.page, 0) + 1:
                yield (
                    ViolationKind.LEASED,
                    f"page {ref.page} is leased under epoch {ref.epoch}, which is not its next",
                )
            self._owner[ref.page], self._epoch[ref.page] = command.lease, ref.epoch

    def _post(self, command: commands.PostBatch) -> Found:
        lease = self._leases.get(command.lease)
        name = name_key(command.lease)
        if lease is None or command.lease in self._said:
            yield (
                ViolationKind.CLOSED,
                f"batch {command.batch} of {name} is posted, and the lease is not open",
            )
            return
        until = command.first_ordinal + len(command.sources)
        if lease.pages[command.first_ordinal : until] != command.sources:
            yield ViolationKind.LEASED, f"batch {command.batch} of {name} reads pages that are not its own"
        if command.first_ordinal != lease.posted_pages:
            yield ViolationKind.CLOSED, f"batch {command.batch} of {name} is posted twice, or out of order"
        lease.posted_pages = until
        lease.batches[command.batch] = _Batch.POSTED

    def _close(self, command: commands.SendClosed) -> Found:
        name, outcome = name_key(command.lease), show(command.outcome)
        said = self._said.setdefault(command.lease, outcome)
        if said != outcome:
            yield ViolationKind.CLOSED, f"{name} was said to be closed with another outcome before"
        lease = self._leases.get(command.lease)
        if lease is None:
            return
        if lease.batches:
            batch, state = next(iter(lease.batches.items()))
            yield ViolationKind.CLOSED, f"{name} is said to be closed while batch {batch} is {state.value}"
        if isinstance(command.outcome, Done):
            pages = command.outcome.manifest.pages
            if not pages == lease.posted_pages == len(lease.pages):
                yield (
                    ViolationKind.CLOSED,
                    f"{name} is said to be done with {pages} pages, of {len(lease.pages)}",
                )

    def _publish(self, published: Mapping[LeaseId, tuple[int, ...]]) -> Found:
        for name, pages in published.items():
            lease = self._leases.get(name)
            if lease is None or not lease.own.issuperset(pages):
                yield (
                    ViolationKind.LEASED,
                    f"{name_key(name)} leaves pages to the prefix index that it has not",
                )
                continue
            lease.published.update(pages)
            self._indexed.update(pages)

    # ------------------------------------------------------------ coming home
    def _free(self, page: int) -> Found:
        why = self._touched_by(page)
        if why is not None:
            yield ViolationKind.FREED, f"page {page} is freed: {why}"
        self._indexed.discard(page)
        name = self._owner.pop(page, None)
        if name in self._leases:
            self._leases[name].own.discard(page)

    def _touched_by(self, page: int) -> str | None:
        """Say who may still touch the page, if anybody may, or that nobody held it."""
        name = self._owner.get(page)
        if name is None and page not in self._indexed:
            return "nobody held it"
        for user in sorted(self._users.get(page, set()) & self._leases.keys()):
            lease = self._leases[user]
            if not lease.came_home:
                return f"{name_key(user)} has not come home"
            if self._flight.of(user):
                return f"pass {min(self._flight.of(user))} of {name_key(user)} is in flight"
            reading = [b for b, state in lease.batches.items() if state is not _Batch.UNPROVEN]
            if reading:
                return f"batch {reading[0]} of {name_key(user)} is in flight"
        return None

    def _come_home(self) -> Found:
        for name in [name for name, lease in self._leases.items() if lease.came_home]:
            lease = self._leases.pop(name)
            left = lease.own - lease.published
            if left:
                yield ViolationKind.FREED, f"{name_key(name)} came home without its pages {sorted(left)}"
            for page in lease.own:
                self._owner.pop(page, None)
            for ref in lease.pages:
                self._users[ref.page].discard(name)
