"""Faults on real nodes: the seam's world with a fault on, and an oracle for what leaves a prefill node too.

Rules: a fault is tried with the layers off that would stop it, and nothing else wrong; what must not happen
then raises `ForeignRead`, as in the seam. The weather of each fault is one in which it gets its chance.
"""

from dataclasses import dataclass, replace

import numpy as np
from tests.serving.seam.oracle import LAYOUT, PAGE_TOKENS, TENANT_TOKENS, ForeignRead
from tests.serving.seam.weather import CROWDED, SLEEPY_WRITERS, STORM, Weather
from tests.serving.seam.world import World

from kvfence.faults import CATALOGUE, SWITCHES, Layer, faulty_decisions
from kvfence.kv import FenceLevel
from kvfence.kv.seal import SEAL_DTYPE
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import RefusalCode, Role
from kvfence.serving.control import Received
from kvfence.serving.wire import EndedMessage, PrefillMessage, ReserveRefusedMessage, unpack_tokens

STEPS = 1_500
PAGES_LAYERS = frozenset((Layer.MANIFEST, Layer.SEAL, Layer.GUARD))
V_FLOATS = LAYOUT.v_offset(0) // LAYOUT.itemsize

# A page is written at one stroke: one that is torn after its hand-over may escape the guard, which says so.
STORMY = replace(STORM, tears_pages=False, decodes=1)
CROWD = replace(CROWDED, tears_pages=False, decodes=1)
SMALL_PREFILL = Weather(
    decodes=1, prefill_pages=5, prompt_tokens_max=30, max_tokens=(1, 2, 5), tears_pages=False
)
OUTGROWING = replace(CROWD, pages=12, prefill_pages=6, prompt_tokens_max=20, max_tokens=(12, 16))
LEAVING = replace(SLEEPY_WRITERS, cancel=6.0, submit=6.0, stop_writers=1.0, lease_ms=20_000)
OVERDUE = replace(SLEEPY_WRITERS, lease_ms=400, cancel=0.2, stop_writers=1.5, submit=5.0)
ROOMY = replace(LEAVING, pages=16, prefill_pages=8)
FEW_WORDS = Weather(prefills=1, decodes=1, pages=24, prompt_words=2, tears_pages=False)
TIGHT_PREFILL = replace(CROWD, prefills=1, pages=16, prefill_pages=8, max_tokens=(1, 2), submit=6.0)
SLOW_WRITES = Weather(
    decodes=1,
    pages=6,
    prompt_tokens_max=14,
    max_tokens=(None, 2),
    requests_max=6,
    lease_ms=1_500,
    tears_pages=False,
    deliver=30.0,
    write=4.0,
    submit=3.0,
    cancel=0.0,
)


@dataclass(frozen=True)
class Trial:
    """The weather in which a fault gets its chance, and the seeds of which at least one shows it."""

    weather: Weather
    seeds: tuple[int, ...] = tuple(range(6))


# Seeds of which one has a prompt that ends with its page: a partly filled page is copied, unwritten or not,
# and the guard sees the copy.
WHOLE_PAGES = (*range(6), 11)
TRIALS = {
    "rejected-continues/incident": Trial(SMALL_PREFILL),
    "rejected-continues/admission-unchecked": Trial(SMALL_PREFILL),
    "rejected-continues/split-state": Trial(SMALL_PREFILL),
    "rejected-continues/recompute-outgrows-pool": Trial(OUTGROWING),
    "false-completion/short-transfer": Trial(CROWD, WHOLE_PAGES),
    "false-completion/whole-claimed": Trial(CROWD, WHOLE_PAGES),
    "false-completion/done-before-written": Trial(CROWD),
    "false-completion/failed-write-counts": Trial(STORMY),
    "transfer-outlives-pages/free-on-deadline": Trial(OVERDUE, (5, 8, 10, 42, 62)),
    "transfer-outlives-pages/free-on-abort": Trial(LEAVING),
    "transfer-outlives-pages/sources-freed-early": Trial(ROOMY),
    "transfer-outlives-pages/closed-before-quiet": Trial(SLEEPY_WRITERS),
    "stale-reference/late-prefill": Trial(SLOW_WRITES, (24, 70, 122, 193, 249, 381)),
    "control-slot-reuse/first-token-slot": Trial(CROWD),
    "id-collision/lease-number-reused": Trial(CROWD),
    "key-omits-identity/chain-dropped": Trial(FEW_WORDS),
    "key-collision/short-key": Trial(CROWD),
    "visible-before-written/published-early": Trial(CROWD),
    "match-not-pinned/unpinned-match": Trial(TIGHT_PREFILL),
    "unscrubbed-reuse/dirty-unused-slots": Trial(CROWD),
    "unscrubbed-reuse/dirty-added-page": Trial(CROWD),
    "padding-touches-live/page-zero": Trial(CROWD),
    "row-mixup/shifted-tables": Trial(CROWD),
    "response-misroute/newest-stream": Trial(CROWD),
}


def catchers(name):
    """The layers with a switch that are expected to speak."""
    return tuple(layer for layer in SWITCHES if layer in CATALOGUE[name].caught_by)


def leak_of(name, seed, *, on=()):
    """What is foreign with the fault on and no layer but `on`; None when nothing is. And who spoke."""
    off = (PAGES_LAYERS | set(catchers(name))) - set(on)
    return run(TRIALS[name].weather, seed, faulty_decisions([name], off)(), sealed=bool(on))


def run(weather, seed, decisions, *, sealed):
    """One world: what was foreign, or None, and the layers that spoke."""
    level = FenceLevel.SEALED if sealed else FenceLevel.OFF
    world = WatchedWorld(seed, level, weather, decisions=decisions, checks_laws=False)
    try:
        world.run(STEPS)
    except ForeignRead as error:
        return error, world.spoke()
    except InvariantError as error:  # a node stops where it finds itself wrong
        return None, world.spoke() | ({Layer.SEAL} if "leave unsealed" in str(error) else set())
    finally:
        world.close()
    return None, world.spoke()


class WatchedWorld(World):
    """A seam world that also looks at every page that lands: its slots are the lease's tenant's, or zero.

    Where seals are verified a page with something in its unused slots is refused: those are left to them.
    """

    def __init__(self, *arguments, **keywords):
        self._tenants = {}
        self._spoke = set()
        super().__init__(*arguments, **keywords)

    def slots_judged(self, landing):
        """How many slots of a page that lands are looked at here."""
        if self.level is FenceLevel.OFF or not self.decisions.verifies_seals():
            return PAGE_TOKENS
        return int(np.frombuffer(landing.trailer, SEAL_DTYPE)["valid_tokens"][0])

    def hear(self, peer, inbound):
        """Remember whose each lease is, and which layer said no."""
        if isinstance(inbound, Received):
            self._overhear(inbound.body)
        super().hear(peer, inbound)

    def _overhear(self, body):
        if isinstance(body, PrefillMessage):
            self._tenants[body.lease] = unpack_tokens(body.tokens)[0] // TENANT_TOKENS
        refusal = body.end.refusal if isinstance(body, EndedMessage) else getattr(body, "refusal", None)
        is_said_of = isinstance(body, EndedMessage | ReserveRefusedMessage)
        if is_said_of and refusal is not None and refusal.code is RefusalCode.CONTEXT_LENGTH:
            self._spoke.add(Layer.REFUSAL)
        if isinstance(body, EndedMessage) and body.end.integrity is not None:
            self._spoke.add(Layer(body.end.integrity.value.partition("_")[0]))

    def spoke(self):
        """The layers of which somebody heard."""
        found = set(self._spoke)
        for seat in self.seats.values():
            figures = seat.node.stats.snapshot()
            if seat.role is Role.ROUTER and figures.get("refusals_total|reason=context_length_exceeded"):
                found.add(Layer.ADMISSION)
            if seat.role is Role.PREFILL and figures.get("integrity_failures_total|reason=guard_owner"):
                found.add(Layer.GUARD)
        return found

    def land(self, landing, *, first_half):
        """Look, then let it land."""
        tenant = self._tenants[landing.lease]
        numbers = np.frombuffer(landing.payload, np.float32)
        slots = numbers[V_FLOATS:][: 2 * PAGE_TOKENS].reshape(PAGE_TOKENS, 2)
        judged = slots[: self.slots_judged(landing)]
        foreign = [slot.tolist() for slot in judged if slot.any() and slot[1] != tenant]
        if foreign:
            raise ForeignRead(f"a page of {landing.lease} leaves with {foreign}, for tenant {tenant}")
        super().land(landing, first_half=first_half)
