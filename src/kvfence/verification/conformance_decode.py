"""The pages of a decode node: leased when free, freed when quiet, by what the node itself was told.

Rules, from laws 3 and 4: a page is leased under its next epoch and by one lease at a time; it becomes free
when its lease's writer has closed (to this node, by that very incarnation) or was cut, no launched pass is
left and no verification. The copied original waits for the passes that were launched before the copy
alone. A poisoned page waits for the cut of every writer that could write when it was found. A lease that
comes home brings all of its pages.
"""

from dataclasses import dataclass, field

from kvfence.protocol import commands, events
from kvfence.protocol.words import LeaseId, PageRef, Peer
from kvfence.verification.conformance_flight import Flight
from kvfence.verification.conformance_rows import Found, name_key
from kvfence.verification.conformance_steps import Step, ViolationKind


@dataclass(slots=True)
class _Lease:
    writer: Peer | None
    pages: tuple[PageRef, ...] = ()  # the remote-written ones
    held: set[int] = field(default_factory=set)
    is_quiet: bool = False
    verifications: int = 0
    is_verified: bool = False
    original: int | None = None
    original_passes: frozenset[int] = frozenset()
    came_home: bool = False


class DecodePageCheck:
    """Owners and epochs of one pool, and what may still touch them."""

    def __init__(self) -> None:
        self._flight = Flight()
        self._leases: dict[LeaseId, _Lease] = {}
        self._owner: dict[int, LeaseId] = {}
        self._epoch: dict[int, int] = {}
        self._writers: set[Peer] = set()
        self._poison: dict[int, set[Peer]] = {}

    def take(self, step: Step) -> Found:
        """Look at one step; yield what is wrong with it."""
        yield from self._flight.take(step.event)
        self._hear(step)
        for row in step.rows:
            lease = self._leases.get(row.key) if isinstance(row.key, LeaseId) else None
            if lease is not None and row.fact == "QUIET":
                lease.came_home = True
        for command in step.commands:
            yield from self._obey(step, command)
        yield from self._come_home()

    # ------------------------------------------------------------ what the node was told
    def _hear(self, step: Step) -> None:
        event = step.event
        match event:
            case events.Closed():
                lease = self._leases.get(event.lease)
                if lease is not None and lease.writer == event.sender:
                    lease.is_quiet = True
            case events.Cut():
                self._cut(event.peer)
            case events.SealsVerified() | events.SealsRejected():
                lease = self._leases.get(event.lease)
                if lease is not None and lease.verifications:
                    lease.verifications -= 1
                    lease.is_verified = isinstance(event, events.SealsVerified)
            case events.TailCopied():
                self._copy(step, event.lease)
        if isinstance(event, events.SealsRejected | events.GuardRejected):
            self._set_apart(step, event)

    def _cut(self, peer: Peer) -> None:
        self._writers.discard(peer)
        for waits in self._poison.values():
            waits.discard(peer)
        for lease in self._leases.values():
            lease.is_quiet = lease.is_quiet or lease.writer == peer

    def _copy(self, step: Step, name: LeaseId) -> None:
        lease = self._leases.get(name)
        took = any(row.key == name and row.fact == "TAIL_COPIED" for row in step.rows)
        if took and lease is not None and lease.pages:
            lease.original = lease.pages[-1].page
            lease.pages = lease.pages[:-1]
            lease.original_passes = self._flight.of(name)

    def _set_apart(self, step: Step, event: events.SealsRejected | events.GuardRejected) -> None:
        took = any(row.key == event.lease and row.action in ("reject_pages", "poison") for row in step.rows)
        for page in event.poisoned if took else ():
            if self._owner.get(page) == event.lease and page not in self._poison:
                self._poison[page] = set(self._writers)

    # ------------------------------------------------------------ what it did
    def _obey(self, step: Step, command: object) -> Found:
        match command:
            case commands.SendLowestLive() if isinstance(step.event, events.Hello):
                self._writers.add(command.writer)
            case commands.StampPages():
                yield from self._stamp(step, command)
            case commands.SendReserved():
                lease = self._leases.get(command.lease)
                if lease is not None and not lease.pages:
                    lease.pages = command.pages
            case commands.VerifySeals():
                yield from self._verify(command.lease)
            case commands.StartRow():
                yield from self._start(command.lease)
            case commands.PagesFreed():
                for page in command.pages:
                    yield from self._free(page)

    def _stamp(self, step: Step, command: commands.StampPages) -> Found:
        if command.lease not in self._leases:
            writer = step.event.writer if isinstance(step.event, events.Reserve) else None
            self._leases[command.lease] = _Lease(writer)
        lease = self._leases[command.lease]
        for ref in command.pages:
            owner = self._owner.get(ref.page)
            if owner is not None:
                both = f"{name_key(command.lease)}, and {name_key(owner)} has it"
                yield ViolationKind.LEASED, f"page {ref.page} is leased to {both}"
            if ref.epoch != self._epoch.get(ref.page, 0) + 1:
                yield (
                    ViolationKind.LEASED,
                    f"page {ref.page} is leased under epoch {ref.epoch}, which is not its next",
                )
            self._owner[ref.page], self._epoch[ref.page] = command.lease, ref.epoch
            lease.held.add(ref.page)

    def _verify(self, name: LeaseId) -> Found:
        lease = self._leases.get(name)
        if lease is None or not lease.is_quiet:
            yield ViolationKind.CONTRACT, f"{name_key(name)} is verified before its writer has closed"
        if lease is not None:
            lease.verifications += 1

    def _start(self, name: LeaseId) -> Found:
        lease = self._leases.get(name)
        if lease is None or not (lease.is_quiet and lease.is_verified):
            yield ViolationKind.CONTRACT, f"{name_key(name)} starts before it was closed and verified"

    def _free(self, page: int) -> Found:
        name = self._owner.pop(page, None)
        lease = None if name is None else self._leases.get(name)
        if name is None or lease is None:
            yield ViolationKind.FREED, f"page {page} is freed and was not leased"
            return
        lease.held.discard(page)
        why = self._touched_by(page, name, lease)
        if why is not None:
            yield ViolationKind.FREED, f"page {page} of {name_key(name)} is freed: {why}"

    def _touched_by(self, page: int, name: LeaseId, lease: _Lease) -> str | None:
        """Say what may still touch the page, if anything may."""
        if page in self._poison:
            waits = self._poison.pop(page)
            if waits:
                return f"it is poisoned, and {len(waits)} writers are not cut"
            return None if lease.came_home else "it is poisoned, and its lease has not come home"
        if not lease.is_quiet:
            return "its writer has neither closed nor been cut"
        passes, verifications = self._flight.of(name), lease.verifications
        if page == lease.original:
            passes, verifications = self._flight.among(lease.original_passes), 0
        elif not lease.came_home:
            return "the lease has not come home"
        if passes:
            return f"pass {min(passes)} is in flight"
        return "it is being verified" if verifications else None

    def _come_home(self) -> Found:
        for name in [name for name, lease in self._leases.items() if lease.came_home]:
            left = self._leases[name].held - self._poison.keys()
            if left:
                yield ViolationKind.FREED, f"{name_key(name)} came home without its pages {sorted(left)}"
            self._leases[name].held -= left
            if not self._leases[name].held:
                del self._leases[name]
