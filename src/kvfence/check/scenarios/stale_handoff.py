"""stale-handoff: a hand-off between prefill and decode is brought back after its lease is over.

Some engines give the client of a prefill node what decode is to read (`kv_transfer_params`): block numbers
and an engine's name. Whoever brings them back after the lease has ended, when other prompts had the pages,
must be refused, or have the prompt computed again.

Rules it keeps:
- The positive control brings a fresh hand-off back at once: if that does not quote its own marker, nothing
  could be seen. A hand-off with an invented name is the negative control.
- Between lease and use, prompts of other tenants' markers are computed on the prefill node.
- Another's marker in the answer is a leak, and the bench's to see. A confident answer without one's own
  marker is stale pages accepted. One's own marker proves nothing: it may have been computed again.
- What was seen counts, whatever fails later: a round that is given no hand-off ends the asking, no more. A
  churn that was not answered has overwritten nothing, and then an honest end of the others says nothing.
- How long a lease is the profile may say (`lease_s`); else the usual thirty seconds are supposed.
- It writes where others could be harmed by a server that fails at this: on a server of one's own alone.
"""

import asyncio
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need
from kvfence.check.markers import Marker, is_shown
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.quoting import AT_ONCE, Tally, ask_all, quote_of, quotes_cost, tenant_at
from kvfence.report import Cost, Severity, Verdict

HANDOFFS = 3  # a round
LEASE_S = 30.0  # what a producer keeps a hand-off for, by default
AFTER_S = 5.0  # and some more
LINES = 12
CHURN_LINES = 24
CHURN_WAVES = 5  # about 16,000 tokens
ACCEPTED_MIN = 2
PREFILL: dict[str, object] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


@dataclass(frozen=True, slots=True)
class Held:
    """A hand-off that was given for a prompt, and the prompt's marker."""

    ask: Ask
    marker: Marker
    handoff: Mapping[str, object]


@dataclass(slots=True)
class Seen:
    """All that was seen, round after round. `missing`: times that no hand-off was given."""

    fresh: Tally = field(default_factory=Tally)
    stale: Tally = field(default_factory=Tally)
    churn: Tally = field(default_factory=Tally)
    invented_accepted: int = 0
    missing: int = 0

    def __str__(self) -> str:
        stale, fresh = self.stale, self.fresh
        missing = f"; {self.missing} times no hand-off was given" if self.missing else ""
        return (
            f"{stale.asked} hand-offs were brought back after their lease: {stale.failed} were refused, "
            f"{stale.shown} were answered with their own marker (computed again, or not yet overwritten), "
            f"and {stale.lost} with something else; of {fresh.asked} fresh ones {fresh.shown} quoted their "
            f"own{missing}"
        )


def wait_s(known: Known) -> float:
    """How long after a hand-off its lease is surely over."""
    return (known.lease_s or LEASE_S) + AFTER_S


def cost(known: Known, size: Size) -> Cost:
    """Hand-offs and their use; fresh, invented and stale; the churn in between; the wait."""
    rounds = size.rounds
    legs = quotes_cost((2 + 2) * rounds + 2 * HANDOFFS * rounds, lines=LINES)
    churn = quotes_cost(rounds * CHURN_WAVES * AT_ONCE, lines=CHURN_LINES, at_once=AT_ONCE)
    return legs + churn + Cost(seconds=rounds * wait_s(known))


async def run(bench: Bench) -> Outcome:
    """Fresh, then stale; round after round, as long as hand-offs are given."""
    seen = Seen()
    for _ in range(bench.size.rounds):
        held = await _hold(bench)
        if held is None:
            seen.missing += 1
            break
        seen.fresh.count(await _use(bench, held, held.handoff, "control"), held.marker)
        invented = await _use(bench, held, _renamed(held.handoff), "control")
        seen.invented_accepted += invented.is_answer and not is_shown(held.marker, invented.content)
        await _stale_round(bench, seen)
    return _outcome(seen, wait_s(bench.known))


async def _stale_round(bench: Bench, seen: Seen) -> None:
    """Hold some, wait past the lease, let others have the pages, and bring them back."""
    asked = [await _hold(bench) for _ in range(HANDOFFS)]
    held = [one for one in asked if one is not None]
    seen.missing += len(asked) - len(held)
    if not held:
        return
    await asyncio.sleep(wait_s(bench.known))
    for _ in range(CHURN_WAVES):
        await _churn(bench, seen.churn)
    for one in held:
        seen.stale.count(await _use(bench, one, one.handoff, "probe"), one.marker)


def _outcome(seen: Seen, waited_s: float) -> Outcome:
    fresh, stale, churn = seen.fresh, seen.stale, seen.churn
    if not fresh.asked:
        why = "the server gives its clients no hand-off, or refuses the fields that ask for one"
        return Outcome(verdict=Verdict.NOT_TESTED, why=why)
    written = (
        f"{waited_s:g} s after a hand-off, {churn.answered} of {churn.asked} prompts of others were computed "
        f"({churn.prompt_tokens:,} tokens) before it was brought back"
    )
    if not fresh.shown:
        why = f"no fresh hand-off was answered with its own marker, so a stale one would show nothing: {seen}"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, notes=(written,))
    if stale.lost >= ACCEPTED_MIN:
        return _accepted(seen, waited_s, written)
    if not (stale.asked and churn.answered):
        why = f"nothing was brought back over others' prompts: {seen}"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, notes=(written,))
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=f"{seen}",
        opportunities=stale.asked,
        sensitivity=fresh.shown_share,
        # The hand-off names its node: the two meet by design.
        co_residence=1.0,
        smallest_effect=f"{ACCEPTED_MIN} stale hand-offs answered with what is not their own",
        notes=(written,),
    )


def _accepted(seen: Seen, waited_s: float, written: str) -> Outcome:
    fresh, stale = seen.fresh, seen.stale
    sighting = Sighting(
        code="KVF219",
        severity=Severity.HIGH,
        what=f"{seen}",
        subject_key="stale-handoff",
        evidence={
            "stale": stale.asked,
            "stale_refused": stale.failed,
            "stale_own": stale.shown,
            "stale_other": stale.lost,
            "fresh_own": fresh.shown,
            "fresh": fresh.asked,
            "invented_accepted": seen.invented_accepted,
            "waited_s": waited_s,
        },
        rival="a model that quotes its own marker now and then only; the fresh ones say how often it does",
    )
    return Outcome(
        verdict=Verdict.EXPOSED,
        why=f"{seen}",
        opportunities=stale.asked,
        sensitivity=fresh.shown_share,
        co_residence=1.0,
        sightings=(sighting,),
        notes=(written,),
    )


async def _hold(bench: Bench) -> Held | None:
    """Ask the prefill node for a hand-off of a marker prompt."""
    tenant = bench.tenants[-1]
    marker = bench.mint(tenant)
    ask = quote_of(bench, marker, mark="handoff", lines=LINES)
    first = dataclasses.replace(
        ask,
        max_tokens=1,
        is_streaming=False,
        node=_node(bench.known, 0),
        extra_body={"kv_transfer_params": PREFILL},
    )
    reply = await bench.ask(tenant, first, own=(marker,))
    return None if reply.handoff is None else Held(ask, marker, reply.handoff)


async def _use(bench: Bench, held: Held, handoff: Mapping[str, object], mark: str) -> Reply:
    """Bring a hand-off to the decode node."""
    ask = dataclasses.replace(
        held.ask,
        mark=mark,
        node=_node(bench.known, 1),
        extra_body={"kv_transfer_params": dict(handoff)},
    )
    return await bench.ask(bench.tenants[-1], ask, own=(held.marker,))


async def _churn(bench: Bench, tally: Tally) -> None:
    """Prompts of others on the prefill node, each for one token."""
    asks = []
    for index in range(AT_ONCE):
        tenant = tenant_at(bench, index)
        marker = bench.mint(tenant)
        ask = quote_of(bench, marker, mark="filler", lines=CHURN_LINES)
        asks.append((tenant, dataclasses.replace(ask, max_tokens=1, node=_node(bench.known, 0)), marker))
    await ask_all(bench, asks, tally)


def _node(known: Known, place: int) -> str | None:
    """Prefill stands first in the profile, decode second; with one address both are behind it."""
    return known.nodes[place] if len(known.nodes) > 1 else None


def _renamed(handoff: Mapping[str, object]) -> dict[str, object]:
    """The same, of a request that never was."""
    return {
        name: f"{value}-never" if name == "remote_request_id" else value for name, value in handoff.items()
    }


SCENARIO = Scenario(
    name="stale-handoff",
    what="a hand-off between prefill and decode, brought back after its lease",
    hazard=Hazard.MAY_HARM_OTHERS,
    classes=("stale-reference", "transfer-outlives-pages"),
    oracle="a foreign marker, or a confident answer without one's own marker, from an expired hand-off",
    control="fresh hand-offs brought back at once, and invented ones",
    codes=("KVF201", "KVF219"),
    cost=cost,
    run=run,
    needs=frozenset({Need.OWN_SERVER}),
)
