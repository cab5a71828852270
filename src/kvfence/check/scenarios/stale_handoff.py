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
- It writes where others could be harmed by a server that fails at this: on a server of one's own alone.
"""

import asyncio
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need
from kvfence.check.markers import Marker, is_shown
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.quoting import AT_ONCE, Tally, ask_all, quote_of, quotes_cost, tenant_at
from kvfence.report import Cost, Severity, Verdict

HANDOFFS = 3  # a round
LEASE_S = 35.0  # what a producer keeps a hand-off for, thirty seconds by default, and some more
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


def cost(_known: Known, size: Size) -> Cost:
    """Hand-offs and their use; fresh, invented and stale; the churn in between; the wait."""
    rounds = size.rounds
    legs = quotes_cost((2 + 2) * rounds + 2 * HANDOFFS * rounds, lines=LINES)
    churn = quotes_cost(rounds * CHURN_WAVES * AT_ONCE, lines=CHURN_LINES, at_once=AT_ONCE)
    return legs + churn + Cost(seconds=rounds * LEASE_S)


async def run(bench: Bench) -> Outcome:
    """Fresh, then stale; round after round."""
    fresh, stale = Tally(), Tally()
    invented_accepted = 0
    for _ in range(bench.size.rounds):
        held = await _hold(bench)
        if held is None:
            why = "the server gives its clients no hand-off, or refuses the fields that ask for one"
            return Outcome(verdict=Verdict.NOT_TESTED, why=why)
        fresh.count(await _use(bench, held, held.handoff, "control"), held.marker)
        invented = await _use(bench, held, _renamed(held.handoff), "control")
        invented_accepted += invented.is_answer and not is_shown(held.marker, invented.content)
        await _stale_round(bench, stale)
    return _outcome(fresh, stale, invented_accepted)


async def _stale_round(bench: Bench, stale: Tally) -> None:
    """Hold some, wait past the lease, let others have the pages, and bring them back."""
    held = [one for _ in range(HANDOFFS) if (one := await _hold(bench)) is not None]
    await asyncio.sleep(LEASE_S)
    for _ in range(CHURN_WAVES):
        await _churn(bench)
    for one in held:
        stale.count(await _use(bench, one, one.handoff, "probe"), one.marker)


def _outcome(fresh: Tally, stale: Tally, invented_accepted: int) -> Outcome:
    said = (
        f"{stale.asked} hand-offs were brought back after their lease: {stale.failed} were refused, "
        f"{stale.shown} were answered with their own marker (computed again, or not yet overwritten), and "
        f"{stale.lost} with something else; of {fresh.asked} fresh ones {fresh.shown} quoted their own"
    )
    if not fresh.shown:
        why = f"no fresh hand-off was answered with its own marker, so a stale one would show nothing: {said}"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    if stale.lost >= ACCEPTED_MIN:
        return _accepted(said, fresh, stale, invented_accepted)
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=said,
        opportunities=stale.asked,
        sensitivity=fresh.shown_share,
        # The hand-off names its node: the two meet by design.
        co_residence=1.0,
        smallest_effect=f"{ACCEPTED_MIN} stale hand-offs answered with what is not their own",
    )


def _accepted(said: str, fresh: Tally, stale: Tally, invented_accepted: int) -> Outcome:
    sighting = Sighting(
        code="KVF219",
        severity=Severity.HIGH,
        what=said,
        subject_key="stale-handoff",
        evidence={
            "stale": stale.asked,
            "stale_refused": stale.failed,
            "stale_own": stale.shown,
            "stale_other": stale.lost,
            "fresh_own": fresh.shown,
            "fresh": fresh.asked,
            "invented_accepted": invented_accepted,
            "waited_s": LEASE_S,
        },
        rival="a model that quotes its own marker now and then only; the fresh ones say how often it does",
    )
    return Outcome(
        verdict=Verdict.EXPOSED,
        why=said,
        opportunities=stale.asked,
        sensitivity=fresh.shown_share,
        co_residence=1.0,
        sightings=(sighting,),
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


async def _churn(bench: Bench) -> None:
    """Prompts of others on the prefill node, each for one token."""
    asks = []
    for index in range(AT_ONCE):
        tenant = tenant_at(bench, index)
        marker = bench.mint(tenant)
        ask = quote_of(bench, marker, mark="filler", lines=CHURN_LINES)
        asks.append((tenant, dataclasses.replace(ask, max_tokens=1, node=_node(bench.known, 0)), marker))
    await ask_all(bench, asks, Tally())


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
