"""A whole deployment in one process under a seed: nodes, wires, clients, faults and the time.

Rules: nothing happens but what the seeded hand picks, one small thing at a time: a few messages of one
link, one turn of one node, half a page of one writer, a fault. Time moves a little with each. The laws of
the cores and the clients' answers are looked at again and again. The same seed gives the same history.

It says nothing about real time, threads within a node, sockets, or the order in which bytes become visible.
"""

import random
from collections import Counter, deque

from tests.serving.seam.nodes import CONTEXT_TOKENS, SEATS
from tests.serving.seam.oracle import TENANT_TOKENS, TENANTS, Client
from tests.serving.seam.wires import Bus, named, put

from kvfence.engine.sampling import SamplingParams
from kvfence.protocol.laws import check_laws
from kvfence.protocol.words import Peer, Role
from kvfence.serving.control import LostPeer, Received
from kvfence.serving.jobs import Job
from kvfence.serving.node_decisions import node_decisions
from kvfence.serving.wire import EndedMessage
from kvfence.transport.base import Loss

HISTORY_EVENTS = 40
HELLO_STEPS = 60
CHECK_STEPS = 25
SETTLE_ROUNDS = 60
SETTLE_STEPS = 400


class World:
    """One deployment. `decisions` replaces those that the level gives; `checks_laws` is for broken ones."""

    def __init__(self, seed, level, weather, *, decisions=None, checks_laws=True):
        self.seed, self.level, self.weather = seed, level, weather
        self.decisions = decisions or node_decisions(level, ())
        self.checks_laws = checks_laws
        self.rng = random.Random(seed)
        self.now, self.steps = 0.0, 0
        self.stats, self.history = Counter(), deque(maxlen=HISTORY_EVENTS)
        self.bus, self.seats = Bus(self), {}
        self.pools, self.receivers, self.writers, self.loose = {}, {}, [], []
        self.clients = []
        self._incarnations, self._due = 100, []
        self._start("router", Role.ROUTER)
        for index in range(weather.decodes):
            self._start(f"decode-{index}", Role.DECODE)
        for index in range(weather.prefills):
            self._start(f"prefill-{index}", Role.PREFILL)
        self._calm = {
            self.bus.deliver_some: weather.deliver,
            self._turn: weather.turn,
            self._write: weather.write,
        }
        self._wild = self._calm | {
            self._submit: weather.submit,
            self._cancel: weather.cancel,
            self._kill_one: weather.kill,
            self._stop_one: weather.stop,
            self._stop_writers: weather.stop_writers,
            self._lose_one: weather.lose,
        }

    # ------------------------------------------------------------ time
    def clock(self):
        """Seconds."""
        return self.now

    def note(self, what):
        """Remember it, for whoever must read a failure."""
        self.history.append(f"{self.now:8.3f} {what}")

    def run(self, steps, *, wild=True):
        """Let so many things happen; without `wild`, nobody comes and nothing goes wrong."""
        actions = self._wild if wild else self._calm
        for _ in range(steps):
            self.now += self.rng.uniform(0, 0.03)
            if self.steps % HELLO_STEPS == 0:
                self._say_hello()
            (action,) = self.rng.choices(list(actions), list(actions.values()))
            action()
            for due in [due for due in self._due if due[0] <= self.now]:
                self._due.remove(due)
                due[1]()
            if self.steps % CHECK_STEPS == 0:
                self.check()
            self.steps += 1

    def settle(self):
        """Let what was begun come to its end; what is not home after that."""
        for _ in range(SETTLE_ROUNDS):
            self.run(SETTLE_STEPS, wild=False)
            if not self.not_home():
                break
            self.now += 2.0
        self.check()
        return self.not_home()

    def check(self):
        """Laws and answers."""
        for client in self.clients:
            client.take(self.stats)
        self.clients = [client for client in self.clients if client.end is None]
        for seat in self.seats.values() if self.checks_laws else ():
            check_laws(seat.core)

    def not_home(self):
        """What nodes and clients still hold or wait for."""
        left = [f"{named(seat.me)}: {held}" for seat in self.seats.values() for held in seat.not_home()]
        return left + ["a client waits" for client in self.clients if client.router in self.seats]

    def close(self):
        """Give the memory of all pools up."""
        for pool in self.pools.values():
            pool.close()

    # ------------------------------------------------------------ nodes
    def _start(self, name, role):
        self._incarnations += 1
        me = Peer(name, self._incarnations)
        self.note(f"{named(me)} starts")
        self.seats[me] = SEATS[role](self, me)

    def is_stopped(self, peer):
        """Tell whether the process is there and stopped."""
        return peer in self.seats and self.seats[peer].stopped

    def hear(self, peer, inbound):
        """To a node that runs."""
        if isinstance(inbound, Received) and isinstance(inbound.body, EndedMessage):
            self.stats[f"attempt {inbound.body.end.reason.value}"] += 1
        seat = self.seats.get(peer)
        if seat is not None and not seat.hear(inbound):
            self.kill(peer)

    def kill(self, peer):
        """The process ends in the midst of whatever it does, and is started again."""
        seat = self.seats.pop(peer, None)
        if seat is None:
            return
        self.note(f"{named(peer)} is killed")
        self.stats["kill"] += 1
        self.receivers.pop(peer, None)
        for writer in self.writers:
            if writer.me == peer:
                writer.alive = False
                writer.give_up(Loss.CONNECTION, may_be_late=True)
            elif writer.peer == peer:
                writer.alive = False

        def restart():
            self.stats["restart"] += 1
            self._start(peer.node, seat.role)

        self._later(1, 6, restart)

    def _later(self, least, most, action):
        self._due.append((self.now + self.rng.uniform(least, most), action))

    def _say_hello(self):
        for seat in [seat for seat in self.seats.values() if not seat.stopped]:
            body = seat.hello()
            for other in self.seats.values():
                if other.role is not seat.role:
                    seat.plane.answer(other.me)
                    self.bus.post(seat.me, other.me, body)

    def _turn(self):
        seat = self._any_seat()
        if seat is not None and not seat.stopped:
            seat.turn()

    def _any_seat(self):
        return self.rng.choice(list(self.seats.values())) if self.seats else None

    # ------------------------------------------------------------ pages
    def _write(self):
        self.writers = [writer for writer in self.writers if not writer.gone]
        for _ in range(3 if self.writers else 0):
            self.rng.choice(self.writers).work()
        if self.loose and self.rng.random() < 0.05:
            self.stats["late page"] += 1
            landing = self.loose.pop(self.rng.randrange(len(self.loose)))
            self.land(landing, first_half=True)
            self.land(landing, first_half=False)

    def land(self, landing, *, first_half):
        """Half a page into the memory of a decode node, whether or not that node lives."""
        if not first_half:
            self.note(f"{named(landing.writer)} wrote page {landing.page} of {named(landing.target)}")
        put(self.pools[landing.target], landing, first_half=first_half)

    def forget_loose(self, writer, target):
        """It is proven that nothing of that writer is on its way."""
        self.loose = [page for page in self.loose if (page.writer, page.target) != (writer, target)]

    # ------------------------------------------------------------ clients
    def _router(self):
        return next((seat for seat in self.seats.values() if seat.role is Role.ROUTER), None)

    def _submit(self):
        router = self._router()
        if router is None or len(router.node._streams) >= self.weather.requests_max:
            return
        tenant = self.rng.choice(TENANTS)
        length = self.rng.randint(1, self.weather.prompt_tokens_max)
        shared = self.rng.randint(0, length)  # what the tenant's other prompts begin with, too
        tails = [(place * 13) % 50 + 1 for place in range(CONTEXT_TOKENS)][:shared]
        tails += [self.rng.randint(1, self.weather.prompt_words) for _ in range(length - shared)]
        tokens = tuple(tenant * TENANT_TOKENS + tail for tail in tails)
        most = self.rng.choice(self.weather.max_tokens)
        name = f"tenant-{tenant}"
        job = Job("request", name, name, tokens, most, SamplingParams(seed=1, temperature=0.0))
        self.clients += [Client(stream, router.me) for stream in router.node.submit([job])]
        self.stats["submit"] += 1

    def _cancel(self):
        mine = [client for client in self.clients if client.router in self.seats]
        if mine:
            client = self.rng.choice(mine)
            self.note(f"the client of request {client.stream.request} leaves")
            client.stream.cancel()

    # ------------------------------------------------------------ faults
    def _kill_one(self):
        seat = self._any_seat()
        if seat is not None:
            self.kill(seat.me)

    def _stop_one(self):
        """The whole process stands still, and is mostly taken for gone; later it goes on, unknowing."""
        seat = self._any_seat()
        if seat is None or seat.stopped:
            return
        self.note(f"{named(seat.me)} is stopped")
        self.stats["stop"] += 1
        writers = [writer for writer in self.writers if writer.me == seat.me]
        self._set_stopped([seat, *writers], to=True)
        self._later(1, 4, lambda: self._set_stopped([seat, *writers], to=False))
        if self.rng.random() < 0.8:
            for other in list(self.seats.values()):
                self._lose(other, seat)

    def _stop_writers(self):
        """Only the threads of one node that write: it goes on to speak."""
        writers = [writer for writer in self.writers if not writer.stopped and not writer.gone]
        if writers:
            writer = self.rng.choice(writers)
            self.note(f"{named(writer.me)} stops writing to {named(writer.peer)}")
            self.stats["stop writers"] += 1
            self._set_stopped([writer], to=True)
            self._later(0.5, 4, lambda: self._set_stopped([writer], to=False))

    def _set_stopped(self, whom, *, to):
        for one in whom:
            one.stopped = to

    def _lose_one(self):
        seat, other = self._any_seat(), self._any_seat()
        if seat is not None:
            self._lose(seat, other)

    def _lose(self, seat, other):
        """`seat` has not heard `other` for too long; the other may know nothing of it."""
        if seat.me == other.me or seat.role is other.role or seat.stopped:
            return
        self.note(f"{named(seat.me)} loses {named(other.me)}")
        self.stats["lose"] += 1
        seat.plane.hang_up(other.me)
        self.hear(seat.me, LostPeer(other.me))
