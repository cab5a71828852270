"""Which layer speaks when a fault is on: the cells of the detection matrix, each from runs.

Rules: first all detecting layers are off and the fault alone is on: seeds in which its harm shows are
kept (a fault without one is no fault). Then each layer alone is on, over those same seeds. It has caught the
fault where it speaks; it has missed it where it never does and foreign or unwritten slots are read all
the same; else it has nothing to do with the fault. A layer that prevents (admission, refusal) is off only for
faults that it hides, and has caught one where requests are refused and the harm is gone. Without a fault,
layers that are off are not missed.
"""

from dataclasses import dataclass, replace
from enum import Enum, unique

from kvfence.faults import Fault, Harm, Layer, faulty_decisions
from kvfence.simulation.harsh import draw_harsh
from kvfence.simulation.outcome import Outcome
from kvfence.simulation.probes import POISON
from kvfence.simulation.run import Run
from kvfence.simulation.swarm import Feature, Swarm, draw_swarm
from kvfence.simulation.tally import seeds_to_find
from kvfence.world import LEAKS, Kind

DETECTING = frozenset((Layer.MANIFEST, Layer.SEAL, Layer.GUARD))
PREVENTING = frozenset((Layer.ADMISSION, Layer.REFUSAL))
LATE = "late write lands in a quarantined page"
REFUSED = "refused: context_length_exceeded"
HARM = {
    Harm.LEAK: LEAKS,
    Harm.REUSE: LEAKS,
    Harm.STALL: frozenset((Kind.NOT_HOME,)),
    Harm.TRESPASS: frozenset((Kind.LATE_STEP,)),
    Harm.DOUBLE: frozenset((Kind.TWO_ATTEMPTS,)),
}
# What reaches a client, which a page that is kept in quarantine cannot do.
READS = frozenset((Kind.FOREIGN_READ, Kind.UNWRITTEN_READ, Kind.WRONG_TOKEN))
# What a layer that looks at pages could have seen; where it did not, it has missed something.
OF_PAGES = frozenset((Kind.FOREIGN_READ, Kind.UNWRITTEN_READ, Kind.FOREIGN_SOURCE, Kind.DIRTY_PAGE))
# The weather without which a fault has nothing to get wrong.
NEEDS = {
    "transfer-outlives-pages/free-on-deadline": (Feature.SHORT_TIMERS,),
    "transfer-outlives-pages/free-on-abort": (Feature.ABORTS,),
    "transfer-outlives-pages/free-on-loss": (Feature.CRASH_PREFILL, Feature.PAUSES),
    "transfer-outlives-pages/free-on-unknown-cut": (Feature.CRASH_PREFILL, Feature.UNPROVEN_CUTS),
    "transfer-outlives-pages/free-on-illegal": (Feature.STRAYS,),
    "transfer-outlives-pages/close-asked-once": (Feature.ABORTS, Feature.LOSS),
    "step-outlives-pages/free-under-step": (Feature.ABORTS,),
    "step-outlives-pages/sources-freed-under-step": (Feature.ABORTS,),
    "stale-reference/late-prefill": (Feature.ABORTS,),
    "stale-reference/incarnation-unchecked": (Feature.CRASH_PREFILL,),
    "stale-reference/pool-adopted": (Feature.CRASH_DECODE,),
    "key-omits-identity/chain-dropped": (Feature.PREFIXES,),
    "key-collision/short-key": (Feature.PREFIXES,),
    "salt-dropped/domain-ignored": (Feature.PREFIXES,),
    "shared-cache-timing/one-domain": (Feature.PREFIXES,),
    "visible-before-written/published-early": (Feature.PREFIXES, Feature.ABORTS),
    "match-not-pinned/unpinned-match": (Feature.PREFIXES,),
}


@unique
class Verdict(Enum):
    """What a cell says."""

    CAUGHT = "caught"
    MISSED = "missed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Cell:
    """`caught` of `runs` seeds in which the harm shows without the layer."""

    verdict: Verdict
    caught: int = 0
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Leaks:
    """Seeds in which the harm of a fault shows when nobody watches, of how many that were run."""

    seeds: tuple[int, ...]
    kinds: tuple[str, ...]
    tried: int


def needs(fault: Fault) -> frozenset[Feature]:
    """The weather that the fault needs."""
    return frozenset(NEEDS.get(fault.name, ()))


def hidden_by(fault: Fault) -> frozenset[Layer]:
    """The preventing layers behind which the fault never acts."""
    return PREVENTING & frozenset(fault.caught_by)


def run_with(
    swarm: Swarm, faults: tuple[str, ...], layers_off: frozenset[Layer], stops_at: frozenset[Kind]
) -> Outcome:
    """One run under faults, with some layers off. One that outlives a late write is not asked for laws."""
    decisions = faulty_decisions(faults, layers_off)()
    return Run(swarm, decisions, stops_at=stops_at, checks_laws=Kind.LATE_WRITE in stops_at).go()


def harms(outcome: Outcome, fault: Fault) -> set[str]:
    """The kinds of harm that show in a run."""
    return {finding.kind.value for finding in outcome.findings if finding.kind in HARM[fault.harm]}


def find_leaks(fault: Fault, *, wanted: int, seeds_max: int) -> Leaks:
    """Look for seeds in which the harm shows with every layer off that could notice."""
    seeds: list[int] = []
    kinds: dict[str, None] = {}
    tried = 0
    for seed in range(seeds_max):
        tried += 1
        stops_at = HARM[fault.harm] | {Kind.LAW}
        outcome = run_with(
            draw_harsh(seed, needs(fault)), (fault.name,), DETECTING | hidden_by(fault), stops_at
        )
        found = harms(outcome, fault)
        if found:
            seeds.append(seed)
            kinds.update(dict.fromkeys(sorted(found)))
        if len(seeds) == wanted:
            break
    return Leaks(tuple(seeds), tuple(kinds), tried)


def judge(fault: Fault, layer: Layer, leaks: Leaks) -> Cell:
    """One cell: the layer alone on, over the seeds in which the harm shows without it."""
    expected = layer in fault.caught_by
    if layer in PREVENTING | {Layer.QUARANTINE} and not expected:
        return Cell(Verdict.NOT_APPLICABLE)
    layers_off = (DETECTING | hidden_by(fault)) - {layer}
    stops_at = frozenset((Kind.LAW,))
    outcomes = [
        run_with(draw_harsh(seed, needs(fault)), (fault.name,), layers_off, stops_at) for seed in leaks.seeds
    ]
    caught = sum(speaks(layer, outcome, fault) for outcome in outcomes)
    if caught:
        return Cell(Verdict.CAUGHT, caught, len(outcomes))
    was_there = any(finding.kind in OF_PAGES for outcome in outcomes for finding in outcome.findings)
    return Cell(Verdict.MISSED if was_there else Verdict.NOT_APPLICABLE, 0, len(outcomes))


def speaks(layer: Layer, outcome: Outcome, fault: Fault) -> bool:
    """Whether the layer has caught the fault in this run."""
    if layer in DETECTING:
        return layer.value in outcome.catches
    if layer is Layer.QUARANTINE:
        is_shown = outcome.quarantined > 0 or outcome.probes[LATE] > 0
        return is_shown and not any(finding.kind in READS for finding in outcome.findings)
    refused = outcome.ends.get(REFUSED, 0) > 0
    refused = refused or any(finding.kind is Kind.BROKEN_PROMISE for finding in outcome.findings)
    return refused and not harms(outcome, fault)


@dataclass(frozen=True, slots=True)
class Found:
    """How many seeds the simulator takes to find a fault, with every layer on that does not hide it."""

    seeds: int
    found: int
    median: float | None
    kinds: tuple[str, ...]


def simulator_finds(fault: Fault, *, wanted: int, seeds_max: int) -> Found:
    """Run seeds until the fault was found often enough."""
    found: list[int] = []
    kinds: dict[str, None] = {}
    seed = 0
    for seed in range(seeds_max):
        outcome = run_with(
            draw_swarm(seed), (fault.name,), hidden_by(fault) & {Layer.ADMISSION}, frozenset(Kind)
        )
        if not outcome.is_clean:
            found.append(seed)
            kinds[outcome.findings[0].kind.value] = None
        if len(found) == wanted:
            break
    return Found(seed + 1, len(found), seeds_to_find(found, 0), tuple(kinds))


CONTROLS = {
    "manifest, seal and guard off": DETECTING,
    "refusal off too": DETECTING | {Layer.REFUSAL},
    "admission off too, refusal on": DETECTING | {Layer.ADMISSION},
}
CONTROL_SEEDS = 60


def control(seeds: int = CONTROL_SEEDS) -> dict[str, dict[str, int]]:
    """Without a fault, layers that are off are not missed: how many runs show harm, of how many."""
    return {
        name: {"harmed": sum(_is_harmed(seed, layers_off) for seed in range(seeds)), "runs": seeds}
        for name, layers_off in CONTROLS.items()
    }


def _is_harmed(seed: int, layers_off: frozenset[Layer]) -> bool:
    outcome = run_with(draw_harsh(seed), (), layers_off, LEAKS | {Kind.NOT_HOME})
    return any(finding.kind in LEAKS | {Kind.NOT_HOME} for finding in outcome.findings)


# ---------------------------------------------------------------- poison
POISON_FAULT = "transfer-outlives-pages/free-on-abort"
POISON_SEEDS = range(150)
# One writer, which dies late enough to have spoilt a page before, and early enough for its cut to come.
POISON_GUSTS = {Feature.ABORTS: 1 / 20, Feature.CRASH_PREFILL: 1 / 300}


@dataclass(frozen=True, slots=True)
class Poisoned:
    """Of so many runs, in how many a page was set apart as poisoned, and in how many one came home."""

    runs: int
    set_apart: int
    came_home: int


def poison(seeds: range = POISON_SEEDS, *, faults: tuple[str, ...] = (POISON_FAULT,)) -> Poisoned:
    """Only a wrong decision leads to a poisoned page: look for what becomes of it, with every layer on."""
    probes = [
        run_with(draw_poisonous(seed), faults, frozenset(), frozenset((Kind.LAW,))).probes for seed in seeds
    ]
    apart, home = (sum(counts[name] > 0 for counts in probes) for name in POISON)
    return Poisoned(len(seeds), apart, home)


def draw_poisonous(seed: int) -> Swarm:
    """Draw a harsh run with clients that leave and one writer that dies."""
    swarm = draw_harsh(seed, frozenset(POISON_GUSTS))
    gusts = tuple((feature, POISON_GUSTS.get(feature, chance)) for feature, chance in swarm.gusts)
    return replace(swarm, world=replace(swarm.world, prefills=1, prefill_pages=12), gusts=gusts)
