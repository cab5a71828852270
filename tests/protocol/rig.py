"""A router, prefill nodes and decode nodes joined by queues that a test can hold, drop and reorder.

Control messages are first in, first out on each link. Everything else that takes time (chunks, writes,
verifications, cuts, decode steps, timers) is a pending job of a node. Nothing happens until the test says
so: `run()` does all that is pending and not held, `do()` one thing. After each event the laws are checked.

Pages have content: who wrote them, under which lease and epoch. `verify` and every decode step look at
it, so that a foreign read is seen even where no law names it.
"""

import re
from collections import deque
from dataclasses import dataclass, field

from tests.protocol.trail import assert_true_trail

from kvfence.protocol import (
    Decisions,
    DecodeConfig,
    DecodeCore,
    NoPrefix,
    PageLedger,
    PageState,
    PrefillConfig,
    PrefillCore,
    RouterConfig,
    RouterCore,
    Transition,
    commands,
    events,
    hash_tokens,
)
from kvfence.protocol.laws import check_laws
from kvfence.protocol.words import (
    AttemptId,
    End,
    EndReason,
    IntegrityReason,
    LeaseId,
    PageRef,
    Peer,
    Role,
)

PAGE_TOKENS = 4


def _snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


Content = tuple[LeaseId, int, int]  # lease, epoch, ordinal


@dataclass
class Write:
    """One posted batch. `is_loose`: its connection is gone, its bytes may still land."""

    writer: Peer
    command: commands.PostBatch
    is_loose: bool = False
    reads_sources: bool = True


@dataclass
class Chunk:
    """A prefill step in flight."""

    command: commands.StartPrefill
    step: int
    done: int


@dataclass
class Row:
    """A decode row as an executor sees it."""

    start: commands.StartRow
    position: int
    last: int
    pages: list[PageRef]
    wants_page: bool = False


@dataclass
class Seat:
    """One node: the incarnation that runs now, its pending jobs, its memory."""

    peer: Peer
    role: Role
    core: RouterCore | PrefillCore | DecodeCore
    jobs: deque = field(default_factory=deque)
    timers: list = field(default_factory=list)
    content: dict[int, Content] = field(default_factory=dict)
    rows: dict[LeaseId, Row] = field(default_factory=dict)
    prompts: dict[LeaseId, commands.StartPrefill] = field(default_factory=dict)
    step: int = 0
    in_flight: dict[int, list[PageRef]] = field(default_factory=dict)  # decode steps, what they read


class Joined:
    """The joined deployment. Node names: r, p0 p1 …, d0 d1 …

    `recorder`, when it is a list, gets every row that any rig takes (the row-coverage report).
    """

    recorder: list | None = None

    def __init__(
        self,
        *,
        prefill_pages=16,
        decode_pages=16,
        spare=2,
        prefills=1,
        decodes=1,
        context=None,
        decisions=None,
        prefix=None,
        chunk_tokens=8,
        batch_pages=2,
        queue_max=8,
        hello=True,
        checks_laws=True,
        same_prompts=False,
    ):
        self.decisions = decisions or Decisions()
        self.checks_laws = checks_laws
        self.same_prompts = same_prompts
        self.sizes = (prefill_pages, decode_pages, spare)
        self.context = context or 10_000
        self.make_prefix = prefix or (lambda _ledger: NoPrefix())
        self.chunk_tokens, self.batch_pages, self.queue_max = chunk_tokens, batch_pages, queue_max
        self.seats: dict[str, Seat] = {}
        self.links: dict[tuple[str, str], deque] = {}
        self.writes: list[Write] = []
        self.held: set[object] = set()
        self.log: list[tuple] = []
        self.trail: list[tuple[str, Transition]] = []
        self.prompts: dict[int, tuple[int, ...]] = {}
        self.answers: dict[int, list[int]] = {}
        self.finished: dict[int, End] = {}
        self.max_tokens: dict[int, int] = {}
        self.cuts: set[tuple[Peer, Peer]] = set()
        self.aborted: set[AttemptId] = set()
        self.posted: dict[tuple[Peer, LeaseId], int] = {}
        self.lost_with_router: set[int] = set()
        self.expects_no_late_write = True
        self.incarnations = 0
        self.submitted = 0
        names = ["r", *(f"p{i}" for i in range(prefills)), *(f"d{i}" for i in range(decodes))]
        for name in names:
            self.boot(name)
        if hello:
            self.greet_all()

    # ------------------------------------------------------------ nodes
    def boot(self, name):
        """Start a fresh incarnation of a node; messages to the old one are lost."""
        self.incarnations += 1
        role = {"r": Role.ROUTER, "p": Role.PREFILL, "d": Role.DECODE}[name[0]]
        peer = Peer(name, self.incarnations)
        prefill_pages, decode_pages, spare = self.sizes
        if role is Role.ROUTER:
            config = RouterConfig(
                context_tokens=self.context, page_tokens=PAGE_TOKENS, queue_max=self.queue_max
            )
            core = RouterCore(peer, config, self.decisions)
        elif role is Role.PREFILL:
            ledger = PageLedger(prefill_pages)
            config = PrefillConfig(page_tokens=PAGE_TOKENS, page_bytes=10, batch_bytes=10 * self.batch_pages)
            core = PrefillCore(peer, config, self.decisions, ledger, self.make_prefix(ledger))
        else:
            config = DecodeConfig(page_tokens=PAGE_TOKENS, close_retries_max=3)
            core = DecodeCore(peer, config, self.decisions, PageLedger(decode_pages, spare_pages=spare))
        self.seats[name] = Seat(peer, role, core)
        for link in self.links:
            if name in link:
                self.links[link].clear()
        return peer

    def greet_all(self):
        """Everybody says hello to everybody, at once."""
        for name in self.seats:
            self.greet(name)

    def greet(self, name):
        """Say hello to all others, past the queues."""
        seat = self.seats[name]
        for other in self.seats:
            if other != name:
                self.feed(other, self.hello_of(seat))

    def hello_of(self, seat):
        """Return what the node would announce now."""
        ledger = getattr(seat.core, "ledger", None)
        if ledger is None:
            return events.Hello(seat.peer, seat.role)
        tokens = ledger.pages * PAGE_TOKENS
        return events.Hello(seat.peer, seat.role, tokens, ledger.free_pages, seat.core.is_draining)

    def crash(self, name, *, tell=True):
        """Kill a node and start it again as a new incarnation. Its posted writes may still land."""
        old = self.seats[name].peer
        if name == "r":
            self.lost_with_router |= set(self.prompts) - set(self.finished)
        for write in self.writes:
            if write.writer == old:
                write.is_loose, write.reads_sources = True, False
        self.writes = [w for w in self.writes if w.command.decode != old]
        self.boot(name)
        if tell:
            for other in list(self.seats):
                if other != name:
                    self.feed(other, events.PeerLost(old))
            for other in self.seats:
                if other != name:
                    self.feed(name, self.hello_of(self.seats[other]))
            self.greet(name)
        return old

    def peer(self, name):
        return self.seats[name].peer

    def core(self, name):
        return self.seats[name].core

    @property
    def router(self):
        return self.seats["r"].core

    @property
    def prefill(self):
        return self.seats["p0"].core

    @property
    def decode(self):
        return self.seats["d0"].core

    # ------------------------------------------------------------ clients
    def submit(self, prompt=8, max_tokens=4, *, tokens=None):
        """Submit a prompt of that many tokens; return the request's number."""
        self.submitted += 1
        number = self.submitted
        self.prompts[number] = tokens or tuple(self._salt(number) + i for i in range(prompt))
        self.answers[number] = []
        out = self.feed("r", events.Submitted(number, len(self.prompts[number]), max_tokens))
        known = self.router.requests.get(number)
        self.max_tokens[number] = 0 if known is None else known.max_tokens
        assert out, "a submission always has an answer or a timer"
        return number

    def _salt(self, number):
        return 1000 if self.same_prompts else number * 1000

    def leave(self, request):
        self.feed("r", events.ClientGone(request))

    def tokens_of(self, attempt: AttemptId):
        """The prompt of an attempt: the client's, and what was delivered."""
        return self.prompts[attempt.request] + tuple(self.answers[attempt.request])

    # ------------------------------------------------------------ stepping
    def feed(self, name, event):
        """Give a node one event, carry its commands out, check the laws."""
        seat = self.seats[name]
        self.log.append((name, "<<", event))
        out = seat.core.step(event)
        assert_true_trail(seat.core)
        self.trail.extend((name, t) for t in seat.core.trail)
        if self.recorder is not None:
            self.recorder.extend((name, t) for t in seat.core.trail)
        self.carry_out(name, out)
        if self.checks_laws:
            check_laws(seat.core)
        return out

    def carry_out(self, name, out):
        """Carry out what a node's core commanded."""
        for command in out:
            self.log.append((name, ">>", command))
            getattr(self, f"carry_{_snake(type(command).__name__)}")(self.seats[name], command)

    def send(self, seat, to, event):
        """Put a message on a link; one for another incarnation than the one that runs is lost."""
        other = self.seats.get(to.node)
        if other is None or other.peer != to:
            return
        self.links.setdefault((seat.peer.node, to.node), deque()).append(event)

    def pending(self):
        """Everything that could happen next, timers left out: messages, jobs, writes, steps."""
        actions = [("link", link) for link, queue in sorted(self.links.items()) if queue]
        actions += [("job", name) for name, seat in self.seats.items() if seat.jobs]
        actions += [("write", i) for i, write in enumerate(self.writes) if not write.is_loose]
        actions += [("step", name) for name, seat in self.seats.items() if self._can_step(seat)]
        return [a for a in actions if not self._is_held(a)]

    def _is_held(self, action):
        kind, key = action
        if kind == "job":
            head = type(self.seats[key].jobs[0]).__name__
            return head in self.held or (key, head) in self.held
        return kind in self.held or key in self.held or action in self.held

    def hold(self, *what):
        """Hold links ("r", "d0"), jobs by command name, "write", ("step", "d0")…"""
        self.held.update(what)

    def release(self, *what):
        self.held.difference_update(what)

    def do(self, action):
        """Do one pending thing."""
        kind, key = action
        if kind == "link":
            self.feed(key[1], self.links[key].popleft())
        elif kind == "job":
            self._work(self.seats[key])
        elif kind == "write":
            self.land(self.writes[key])
        elif kind == "step":
            self.launch(key)
            self.retire(key)

    def run(self, limit=5_000):
        """Do what is pending until nothing is."""
        for _ in range(limit):
            actions = self.pending()
            if not actions:
                return self
            self.do(actions[0])
        raise AssertionError("the joined rig does not come to rest:\n" + self.story())

    # ------------------------------------------------------------ writes
    def land(self, write):
        """The bytes land in decode's memory; a connected writer hears of it. What was cut lands nowhere."""
        c = write.command
        self.writes.remove(write)
        is_cut = (write.writer, c.decode) in self.cuts
        if not is_cut:
            self._put(write)
        if not write.is_loose:
            done = events.WriteCompleted(c.lease, c.batch)
            lost = events.WriteFailed(c.lease, c.batch, quiet=True)
            self.feed(write.writer.node, lost if is_cut else done)

    def fail(self, write):
        """The transport gives the batch up: its bytes may still land."""
        write.is_loose = True
        c = write.command
        self.feed(write.writer.node, events.WriteFailed(c.lease, c.batch))

    def drop(self, write):
        """The transport gives the batch up and proves that nothing of it will land."""
        self.writes.remove(write)
        c = write.command
        self.feed(write.writer.node, events.WriteFailed(c.lease, c.batch, quiet=True))

    def reconnect(self, name, target):
        """A new connection from prefill to decode: what was loose on an older one is gone for good."""
        writer, decode = self.seats[name].peer, self.seats[target].peer
        if (writer, decode) in self.cuts or decode in self.seats[name].core.destroying:
            return
        self.writes = [
            w for w in self.writes if not (w.is_loose and (w.writer, w.command.decode) == (writer, decode))
        ]
        self.feed(name, events.Reconnected(decode))

    def _assert_held(self, seat, refs, reader):
        """What is read now was not given to anybody else meanwhile (law 4)."""
        ledger = seat.core.ledger
        for ref in refs:
            is_held = ledger.epoch[ref.page] == ref.epoch and ledger.state[ref.page] != PageState.FREE
            assert is_held, f"{ref} is freed under {reader} (law 4)"

    def _put(self, write):
        c = write.command
        if write.reads_sources:
            self._assert_held(self.seats[write.writer.node], c.sources, "an outgoing write")
        seat = self.seats[c.decode.node]
        if seat.peer == c.decode:
            for ref in c.targets:
                owned = seat.core.ledger.owns(c.lease.sequence, ref)
                assert owned or not self.expects_no_late_write, f"{ref} is written after it was freed (law 4)"
            for ordinal, ref in enumerate(c.targets, c.first_ordinal):
                seat.content[ref.page] = (c.lease, ref.epoch, ordinal)

    # ------------------------------------------------------------ timers
    def expire(self, name, kind, **match):
        """Fire the newest timer of that kind on a node."""
        timers = [t for t in self.seats[name].timers if t.timer.kind is kind]
        assert timers, f"{name} has no timer {kind}"
        self.fire_timer(name, timers[-1])

    def fire_timer(self, name, timer):
        self.seats[name].timers.remove(timer)
        self.feed(name, events.Expired(timer.timer, timer.generation))

    # ------------------------------------------------------------ decode steps
    def _can_step(self, seat):
        return any(not row.wants_page for row in seat.rows.values())

    def launch(self, name):
        """Launch a forward pass over all rows that can go on; every page that it reads is the row's own."""
        seat = self.seats[name]
        rows = [row for row in seat.rows.values() if not row.wants_page]
        seat.step += 1
        seat.in_flight[seat.step] = [ref for row in rows for ref in row.pages]
        for row in rows:
            for ref in row.pages:
                assert seat.content[ref.page][0] == row.start.lease, f"{ref} is read by another lease"
        self.feed(name, events.StepLaunched(seat.step, tuple(row.start.lease for row in rows)))
        for row in rows:
            if row.start.lease in seat.rows:
                self._advance(seat, row)
        return seat.step

    def retire(self, name):
        """Retire the oldest step in flight."""
        seat = self.seats[name]
        step = next(iter(seat.in_flight))
        self._assert_held(seat, seat.in_flight.pop(step), "a decode step")
        self.feed(name, events.StepRetired(step))

    def retire_all(self):
        """Retire every step that is in flight, those that a test launched by itself too."""
        for name, seat in self.seats.items():
            if seat.role is not Role.ROUTER:
                seat.in_flight.clear()
                for step in list(seat.core.steps._steps):
                    self.feed(name, events.StepRetired(step))

    def _advance(self, seat, row):
        row.position += 1
        self._token(seat, row.start.attempt, row.position)
        if row.position >= row.last:
            del seat.rows[row.start.lease]
            self.feed(seat.peer.node, events.RowFinished(row.start.lease, End(EndReason.LENGTH)))
            return
        self._want_page(seat, row)

    def _want_page(self, seat, row):
        if row.position + 1 > len(row.pages) * PAGE_TOKENS:
            row.wants_page = True
            self.feed(seat.peer.node, events.PageWanted(row.start.lease))

    def _token(self, seat, attempt, position):
        router = self.seats["r"].peer
        if router.incarnation == attempt.incarnation:
            self.send(seat, router, events.TokenMade(seat.peer, attempt, position))

    # ------------------------------------------------------------ jobs
    def _work(self, seat):
        command = seat.jobs.popleft()
        name = seat.peer.node
        if isinstance(command, commands.VerifySeals):
            self.feed(name, self._verify(seat, command))
        elif isinstance(command, commands.AskCut):
            self.cut(name, command.peer)
        elif isinstance(command, commands.DestroyConnection):
            for write in self.writes:
                if write.writer == seat.peer and write.command.decode == command.peer:
                    write.is_loose, write.reads_sources = True, False
            self.feed(name, events.ConnectionDestroyed(command.peer))
        elif isinstance(command, commands.StartPrefill):
            self._launch_chunk(seat, command)
        elif isinstance(command, Chunk):
            self._end_chunk(seat, command)

    def cut(self, name, peer):
        """Prove that the incarnation writes no more: what was loose is dropped."""
        target = self.seats[name].peer
        self.writes = [w for w in self.writes if (w.writer, w.command.decode) != (peer, target)]
        running = self.seats[peer.node].peer == peer
        self.cuts.add((peer, target))
        self.feed(name, events.Cut(peer))
        if running and self.seats[peer.node].role is Role.PREFILL:
            self.feed(peer.node, events.ConnectionDestroyed(target))

    def _verify(self, seat, command):
        foreign = []
        for ordinal, ref in enumerate(command.pages):
            content = seat.content[ref.page]
            if content == (command.lease, ref.epoch, -1):
                return events.SealsRejected(command.lease, IntegrityReason.SEAL_UNWRITTEN)
            if content != (command.lease, ref.epoch, ordinal):
                foreign.append(ref.page)
        if foreign:
            return events.SealsRejected(command.lease, IntegrityReason.SEAL_FOREIGN, tuple(foreign))
        return events.SealsVerified(command.lease)

    def _launch_chunk(self, seat, command):
        """Launch one chunk; its end is another job, so that anything can happen in between."""
        if command.lease not in seat.prompts:
            return
        done = seat.core.leases[command.lease].computed_tokens
        seat.step += 1
        chunk = Chunk(command, seat.step, min(len(command.tokens), done + self.chunk_tokens))
        self.feed(seat.peer.node, events.StepLaunched(seat.step, (command.lease,)))
        seat.jobs.append(chunk)

    def _end_chunk(self, seat, chunk):
        name, lease = seat.peer.node, chunk.command.lease
        self._assert_held(seat, chunk.command.pages, "a prefill step")
        self.feed(name, events.StepRetired(chunk.step))
        if lease in seat.prompts:
            is_last = chunk.done == len(chunk.command.tokens)
            self.feed(name, events.ChunkComputed(lease, chunk.done, chunk.done if is_last else None))
            if not is_last and lease in seat.prompts:
                seat.jobs.append(chunk.command)

    # ------------------------------------------------------------ commands: every role
    def carry_set_timer(self, seat, c):
        seat.timers = [t for t in seat.timers if t.timer != c.timer]
        seat.timers.append(c)

    def carry_pages_freed(self, seat, c):
        """Freed pages may be leased again later in the same step: their stamps come after this."""
        for page in c.pages:
            seat.content.pop(page, None)

    # ------------------------------------------------------------ commands: router
    def carry_send_reserve(self, seat, c):
        before = AttemptId(c.attempt.incarnation, c.attempt.request, c.attempt.number - 1)
        assert c.attempt.number == 1 or before in self.aborted, f"{before} was not aborted before {c.attempt}"
        token_hash = hash_tokens(self.tokens_of(c.attempt))
        self.send(
            seat,
            c.decode,
            events.Reserve(seat.peer, c.attempt, c.writer, c.tokens, c.max_tokens, token_hash),
        )

    def carry_send_prefill(self, seat, c):
        tokens = self.tokens_of(c.attempt)
        self.send(
            seat,
            c.prefill,
            events.Prefill(seat.peer, c.attempt, c.decode, c.lease, c.pages, tokens, "tenant"),
        )

    def carry_send_abort(self, seat, c):
        self.aborted.add(c.attempt)
        self.send(seat, c.peer, events.Abort(seat.peer, c.attempt))

    def carry_deliver_token(self, _seat, c):
        self.answers[c.request].append(c.position)

    def carry_finish_request(self, _seat, c):
        assert c.request not in self.finished, f"request {c.request} is finished twice (law 7)"
        self.finished[c.request] = c.end

    # ------------------------------------------------------------ commands: decode
    def carry_stamp_pages(self, seat, c):
        for ref in c.pages:
            seat.content[ref.page] = (c.lease, ref.epoch, -1)

    def carry_send_reserved(self, seat, c):
        self.send(seat, c.router, events.Reserved(seat.peer, c.attempt, c.lease, c.pages))

    def carry_send_reserve_refused(self, seat, c):
        self.send(seat, c.router, events.ReserveRefused(seat.peer, c.attempt, c.refusal))

    def carry_verify_seals(self, seat, c):
        seat.jobs.append(c)

    def carry_ask_cut(self, seat, c):
        seat.jobs.append(c)

    def carry_start_row(self, seat, c):
        request = c.attempt.request
        pages = [*c.pages, c.tail]
        is_partial = c.manifest.tokens % PAGE_TOKENS != 0
        if is_partial:
            pages.pop(-2)
        prompt = len(self.prompts[request])
        row = Row(c, c.manifest.first_position, prompt + self.max_tokens[request] - 1, pages)
        seat.rows[c.lease] = row
        self._token(seat, c.attempt, row.position)
        if is_partial:
            self.later(seat, events.TailCopied(c.lease))
        if row.position >= row.last:
            del seat.rows[c.lease]
            self.later(seat, events.RowFinished(c.lease, End(EndReason.LENGTH)))
        else:
            row.wants_page = False

    def later(self, seat, event):
        """An executor's answer, on its own link to its node."""
        self.links.setdefault((seat.peer.node, seat.peer.node), deque()).append(event)

    def carry_grant_page(self, seat, c):
        row = seat.rows[c.lease]
        row.pages.append(c.page)
        row.wants_page = False

    def carry_stop_row(self, seat, c):
        seat.rows.pop(c.lease, None)

    def carry_send_close(self, seat, c):
        self.send(seat, c.writer, events.Close(seat.peer, c.lease))

    def carry_send_lowest_live(self, seat, c):
        self.send(seat, c.writer, events.LowestLive(seat.peer, c.sequence))

    def carry_send_ended(self, seat, c):
        self.send(seat, c.router, events.AttemptEnded(seat.peer, c.attempt, c.end))

    # ------------------------------------------------------------ commands: prefill
    def carry_start_prefill(self, seat, c):
        seat.prompts[c.lease] = c
        seat.jobs.append(c)

    def carry_stop_prefill(self, seat, c):
        seat.prompts.pop(c.lease, None)

    def carry_post_batch(self, seat, c):
        assert len(c.sources) == len(c.targets)
        key = (seat.peer, c.lease)
        assert c.first_ordinal == self.posted.get(key, 0), f"{c} is posted out of order, or twice"
        self.posted[key] = c.first_ordinal + len(c.sources)
        self.writes.append(Write(seat.peer, c))

    def carry_stop_posting(self, seat, c):
        """What was posted may complete."""

    def carry_send_closed(self, seat, c):
        self.send(seat, c.decode, events.Closed(seat.peer, c.lease, c.outcome))

    def carry_destroy_connection(self, seat, c):
        seat.jobs.append(c)

    # ------------------------------------------------------------ verdicts
    def story(self, lines=60):
        """The last events and commands, for a failing test's message."""
        return "\n".join(f"{name} {way} {what}" for name, way, what in self.log[-lines:])

    def wrong_answers(self):
        """Say which client got a token twice, out of order, or a cheerful end too early."""
        for number, positions in self.answers.items():
            start = len(self.prompts[number])
            if positions != list(range(start, start + len(positions))):
                return f"request {number} got {positions}"
            end = self.finished.get(number)
            if end is None:
                continue
            if end.reason is EndReason.INTEGRITY:
                return f"request {number} was stopped by the fence: {end.integrity}"
            if end.reason is EndReason.LENGTH and len(positions) != self.max_tokens[number]:
                return f"request {number} ended by length after {len(positions)} tokens"
        return None

    def lease(self, name="d0", index=-1):
        return list(self.seats[name].core.leases.values())[index]

    def state(self, name, index=-1):
        """State of the newest record of a node."""
        core = self.seats[name].core
        records = core.requests if isinstance(core, RouterCore) else core.leases
        return list(records.values())[index].state

    def is_home(self, name):
        """All pages are FREE or CACHED and no record is left."""
        core = self.seats[name].core
        if isinstance(core, RouterCore):
            return not core.requests and not core.queue
        ledger = core.ledger
        home = ledger.count(PageState.FREE) + ledger.count(PageState.CACHED)
        return home == ledger.total and not core.leases

    def assert_home(self):
        for name in self.seats:
            assert self.is_home(name), f"{name} is not home:\n" + self.story()
        for number in self.prompts:
            ended = number in self.finished or number in self.lost_with_router
            assert ended, f"request {number} never ended"
        return self
