"""The twelve laws as named invariants over the cores and their ledgers.

Each function raises InvariantError that begins with the law's name when the law does not hold *now*. They
look at state only, cost O(pages), and are meant for tests, simulator and model checker, not for the hot
path. What a law says about bytes, steps of the model, HTTP or a whole run cannot be seen in a core: the
docstring says who checks that part.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from kvfence.protocol.decode import DecodeCore
from kvfence.protocol.decode_table import DecodeState
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageLedger, PageState
from kvfence.protocol.prefill import PrefillCore
from kvfence.protocol.prefill_table import PrefillState
from kvfence.protocol.router import RouterCore
from kvfence.protocol.router_table import RouterState
from kvfence.protocol.words import PageRef, Role

Core = RouterCore | PrefillCore | DecodeCore

_WRITER_CLOSED = (DecodeState.VERIFYING, DecodeState.RUNNING, DecodeState.WAITING)
_ROWS = (DecodeState.RUNNING, DecodeState.WAITING)
_ALIVE = (RouterState.RESERVING, RouterState.PREFILLING, RouterState.STREAMING)


def _check_owned(law: str, ledger: PageLedger, sequence: int, refs: list[PageRef]) -> None:
    for ref in refs:
        invariant(ledger.owns(sequence, ref), f"{law}: {ref} is used by {sequence} but is not its own")


def ownership(core: Core) -> None:
    """Law 1. A lease names only pages that the ledger gives it, under that epoch; no page has two leases.

    That a forward pass touches no others is the step guard's (`kvfence.kv.guard`).
    """
    if isinstance(core, DecodeCore):
        for record in core.leases.values():
            _check_owned("ownership", core.ledger, record.lease.sequence, record.held())
        named = Counter(ref.page for record in core.leases.values() for ref in record.held())
    elif isinstance(core, PrefillCore):
        for lease in core.leases.values():
            _check_owned("ownership", core.ledger, lease.owner, list(lease.own_pages))
            for page in lease.pinned:
                pinned_state = core.ledger.state[page]
                invariant(pinned_state == PageState.SEALED, f"ownership: prefix page {page} is not sealed")
        named = Counter(ref.page for lease in core.leases.values() for ref in lease.own_pages)
    else:
        return
    twice = [page for page, n in named.items() if n > 1]
    invariant(not twice, f"ownership: pages {twice} are held by two leases")


def written(core: Core) -> None:
    """Law 2. A row's block table has no page that is merely reserved; a post reads only sealed pages.

    Slots and zeroing are checked by the engine's tests and the simulator's oracle.
    """
    if isinstance(core, DecodeCore):
        for record in core.leases.values():
            if record.state in _ROWS:
                for ref in record.held():
                    state = core.ledger.state[ref.page]
                    invariant(state != PageState.RESERVED, f"written: {ref} of a row was never written")
    elif isinstance(core, PrefillCore):
        for lease in core.leases.values():
            invariant(
                lease.posted_pages <= lease.sealed_pages,
                f"written: {lease.lease} posted pages that were not sealed",
            )


def contract(core: Core) -> None:
    """Law 3. Decode verifies and runs only after the writer closed, with a manifest that fits."""
    if not isinstance(core, DecodeCore):
        return
    for record in core.leases.values():
        if record.state in _WRITER_CLOSED:
            manifest = record.manifest
            pages = len(record.pages) + (0 if record.original is None else 1)
            invariant(record.writer_is_quiet, f"contract: {record.lease} goes on, its writer has not closed")
            invariant(manifest is not None, f"contract: {record.lease} goes on without a manifest")
            fits = manifest is not None and (
                (manifest.lease, manifest.writer, manifest.tokens, manifest.token_hash)
                == (record.lease, record.writer, record.tokens, record.token_hash)
            )
            short = 0 if manifest is None else manifest.pages - pages
            invariant(fits, f"contract: {record.lease} goes on with a manifest that differs")
            invariant(short in (0, 1), f"contract: {record.lease} goes on with {short} pages missing")


def quiet_before_free(core: Core) -> None:
    """Law 4. Nothing that a writer, a step or a post may touch is FREE; what is FREE has no owner or pin."""
    if isinstance(core, RouterCore):
        return
    ledger = core.ledger
    for page in range(ledger.total):
        if ledger.state[page] == PageState.FREE:
            idle = ledger.owner[page] == 0 and ledger.pins[page] == 0
            invariant(idle, f"quiet before free: page {page} is FREE but owned or pinned")
    if isinstance(core, DecodeCore):
        for record in core.leases.values():
            invariant(record.steps >= 0, f"quiet before free: {record.lease} retired more than launched")
            in_flight = len(core.steps.of(record.lease))
            invariant(record.steps == in_flight, f"quiet before free: {record.lease} lost count of its steps")
            for ref in record.held():
                is_free = ledger.state[ref.page] == PageState.FREE
                invariant(not is_free, f"quiet before free: {ref} of a live lease is FREE")
        return
    for lease in core.leases.values():
        in_flight = len(core.steps.of(lease.lease))
        invariant(lease.steps == in_flight, f"quiet before free: {lease.lease} lost count of its steps")
        may_land = lease.in_flight or lease.lost or lease.unproven
        is_done = lease.was_said and may_land
        invariant(not is_done, f"quiet before free: {lease.lease} was said to be closed with writes left")


def rejection_is_terminal(core: Core) -> None:
    """Law 5. One field says where a record stands, and an end is known exactly in CLOSING."""
    if isinstance(core, DecodeCore):
        for record in core.leases.values():
            has_ended = record.end is not None
            fits = has_ended == (record.state is DecodeState.CLOSING)
            invariant(fits, f"rejection is terminal: {record.lease} is {record.state} with {record.end}")
            is_over = record.attempt in core.over
            invariant(not is_over, f"rejection is terminal: {record.attempt} is over and goes on")
        for lease_id in core.waiting:
            is_waiting = core.leases[lease_id].state is DecodeState.WAITING
            invariant(is_waiting, f"rejection is terminal: {lease_id} waits for a page without being a row")
    elif isinstance(core, PrefillCore):
        for lease in core.leases.values():
            fits = (lease.outcome is not None) == (lease.state is PrefillState.CLOSING)
            invariant(fits, f"rejection is terminal: {lease.lease} is {lease.state} with {lease.outcome}")
            memory = core.memory.get(lease.decode)
            is_closed = memory is not None and lease.lease.sequence in memory.outcomes
            goes_on = is_closed and lease.state is not PrefillState.CLOSING
            invariant(not goes_on, f"rejection is terminal: {lease.lease} is closed and goes on")
    else:
        for request in core.requests.values():
            is_queued = request.request in core.queue
            fits = is_queued == (request.state is RouterState.QUEUED)
            invariant(
                fits, f"rejection is terminal: request {request.request} is {request.state} in the queue"
            )


def capacity(core: Core) -> None:
    """Law 6. An attempt is alive only on nodes whose pools hold all that the request may need."""
    if isinstance(core, RouterCore):
        for request in core.requests.values():
            for peer in (request.decode, request.prefill):
                node = None if peer is None else core.nodes.get(peer)
                if node is not None and request.state in _ALIVE:
                    fits = request.needed_tokens <= node.pool_tokens
                    invariant(fits, f"capacity: request {request.request} can outgrow {node.peer}")
    elif isinstance(core, PrefillCore):
        for lease in core.leases.values():
            fits = len(lease.tokens) <= core.pool_tokens
            invariant(fits, f"capacity: {lease.lease} is longer than the pool")
    else:
        for record in core.leases.values():
            invariant(record.tokens <= core.pool_tokens, f"capacity: {record.lease} is longer than the pool")


def honest_answers(core: Core) -> None:
    """Law 7. The router delivers no more than was asked for, and each request it knows is one of its own.

    That each Submitted has exactly one FinishRequest is a property of a run: the rigs count them.
    """
    if isinstance(core, RouterCore):
        for request in core.requests.values():
            fits = request.delivered_tokens <= request.max_tokens
            invariant(fits, f"honest answers: request {request.request} got more than it asked for")


def sharing_by_domain(core: Core) -> None:
    """Law 8. Pins are exactly the live leases that use a page; what is CACHED has neither pin nor owner.

    Keys and domains are the prefix index's (`kvfence.kv.prefix`).
    """
    if not isinstance(core, PrefillCore):
        return
    ledger = core.ledger
    pins = Counter(chain.from_iterable(lease.pinned for lease in core.leases.values()))
    for page in range(ledger.total):
        fits = ledger.pins[page] == pins[page]
        invariant(fits, f"sharing by domain: page {page} has {ledger.pins[page]} pins, {pins[page]} users")
        if ledger.state[page] == PageState.CACHED:
            idle = ledger.owner[page] == 0 and ledger.pins[page] == 0
            invariant(idle, f"sharing by domain: CACHED page {page} is owned or pinned")
    for lease in core.leases.values():
        all_pinned = lease.pinned == tuple(ref.page for ref in lease.pages[: lease.prefix_pages])
        invariant(all_pinned, f"sharing by domain: {lease.lease} reads prefix pages that it did not pin")
        for page in lease.published - {ref.page for ref in lease.pages[: lease.sealed_pages]}:
            invariant(condition=False, why=f"sharing by domain: page {page} is published but not sealed")
        for page in lease.published:
            is_sealed = ledger.state[page] == PageState.SEALED
            invariant(is_sealed, f"sharing by domain: page {page} is published but not sealed")


def ids_are_ours(core: Core) -> None:
    """Law 9. Records are filed under the ids that we drew, and every attempt has one record."""
    if isinstance(core, RouterCore):
        for number, request in core.requests.items():
            fits = number == request.request and request.attempt.incarnation == core.me.incarnation
            invariant(fits, f"ids are ours: request {number} is filed wrongly")
        return
    for lease_id, record in core.leases.items():
        fits = record.lease == lease_id and core.attempts.get(record.attempt) == lease_id
        invariant(fits, f"ids are ours: {lease_id} is filed wrongly")
    invariant(len(core.attempts) == len(core.leases), "ids are ours: an attempt has no lease")


def incarnation(core: Core) -> None:
    """Law 10. Leases carry this decode's incarnation; only a living, newest writer has one RESERVED."""
    if isinstance(core, DecodeCore):
        for record in core.leases.values():
            ours = record.lease.incarnation == core.me.incarnation
            invariant(ours, f"incarnation: {record.lease} was granted by another incarnation")
            if record.state is DecodeState.RESERVED:
                alive = core.peers.is_alive(record.writer, Role.PREFILL)
                invariant(
                    alive, f"incarnation: {record.lease} is open to {record.writer}, which is not alive"
                )
    elif isinstance(core, PrefillCore):
        for lease in core.leases.values():
            fits = lease.lease.incarnation == lease.decode.incarnation
            invariant(fits, f"incarnation: {lease.lease} is not of {lease.decode}")
    else:
        for peer in core.nodes:
            invariant(core.peers.newest(peer.node) == peer, f"incarnation: {peer} was superseded")


def everything_comes_home(core: Core) -> None:
    """Law 11. Every page is FREE, CACHED, a live lease's, in use as a prefix, or shown POISONED.

    A lease in CLOSING whose writer is not quiet has a writer that is asked or being cut.
    """
    if isinstance(core, RouterCore):
        return
    ledger = core.ledger
    states = Counter(ledger.state)
    for state in PageState:
        invariant(states[state] == ledger.count(state), f"everything comes home: {state.name} is miscounted")
    if isinstance(core, DecodeCore):
        held = {ref.page for record in core.leases.values() for ref in record.held()} | set(core.poisoned)
        for record in core.leases.values():
            if not record.writer_is_quiet:
                known = record.writer in core.writers
                invariant(known, f"everything comes home: nobody can say who holds {record.lease} open")
    else:
        held = {ref.page for lease in core.leases.values() for ref in lease.pages}
    for page in range(ledger.total):
        is_home = ledger.state[page] in (PageState.FREE, PageState.CACHED)
        invariant(is_home or page in held, f"everything comes home: page {page} belongs to nobody")


def noninterference(core: Core) -> None:
    """Law 12. Decode's and the router's decisions cannot depend on content: they hold no prompt.

    The law itself is about logits: the engine's tests compare them bit by bit.
    """
    records: list[object] = []
    if isinstance(core, DecodeCore):
        records = list(core.leases.values())
    elif isinstance(core, RouterCore):
        records = list(core.requests.values())
    for record in records:
        tokens = getattr(record, "tokens", 0)
        invariant(isinstance(tokens, int), "noninterference: a record holds token ids")


@dataclass(frozen=True, slots=True)
class Law:
    """A law of the protocol: its number, its name, and what of it a core can be asked."""

    number: int
    name: str
    check: Callable[[Core], None]


LAWS = (
    Law(1, "Ownership", ownership),
    Law(2, "Written", written),
    Law(3, "Contract", contract),
    Law(4, "Quiet before free", quiet_before_free),
    Law(5, "Rejection is terminal", rejection_is_terminal),
    Law(6, "Capacity", capacity),
    Law(7, "Honest answers", honest_answers),
    Law(8, "Sharing by domain", sharing_by_domain),
    Law(9, "Ids are ours", ids_are_ours),
    Law(10, "Incarnation", incarnation),
    Law(11, "Everything comes home", everything_comes_home),
    Law(12, "Noninterference", noninterference),
)


def check_laws(core: Core) -> None:
    """Raise InvariantError for the first law that does not hold in this core."""
    for law in LAWS:
        law.check(core)
