"""id-collision: two requests under one client-chosen id, and fields that are the server's own business.

Two tenants send the same id at once, by header and by each body field that engines know, each with a marker
of its own. Each must get its own marker back, or a refusal. Then one request carries fields by which the
parts of a deployment steer one another: they must be refused or ignored.

Rules it keeps:
- The same pairs with different ids are the control; what fails there, too, is no collision.
- A marker of the other in an answer is a leak, and the bench says so. An answer that got lost, an error for
  one of two, is the id used as a key.
- The control fields point at a port of the server's own machine where nobody listens, so that a server which
  believes them harms nobody but this request.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.markers import Marker, is_shown
from kvfence.check.markers_prompts import (
    QUOTE_TOKENS,
    copying_endpoint,
    prompt_tokens_max,
    prompts_for,
)
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.saying import co_residence
from kvfence.check.statistics import lower_share
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

PAIRS = 3  # of each way to name a request
QUOTE_LINES = 4
WAIT_S = 30.0
BROKEN_MIN = 2
# A place of the server's own machine where nobody listens.
NOBODY = {"host": "127.0.0.1", "port": 9}

_BODY_FIELDS = ("request_id", "rid", "prompt_cache_key")
CONTROL_FIELDS: Mapping[str, Mapping[str, object]] = {
    "bootstrap": {
        "bootstrap_host": NOBODY["host"],
        "bootstrap_port": NOBODY["port"],
        "bootstrap_room": 7_777_777,
    },
    "kv_transfer_params": {
        "kv_transfer_params": {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_host": NOBODY["host"],
            "remote_port": NOBODY["port"],
            "remote_engine_id": "nobody",
            "remote_request_id": "nobody",
            "remote_block_ids": [0],
        }
    },
}
_LOST = frozenset({Failure.TIMEOUT, Failure.SERVER, Failure.CUT, Failure.ERROR_EVENT, Failure.CONNECT})


@dataclass(slots=True)
class Named:
    """What came of the pairs of one way to name a request. `broken` and `refused` count pairs."""

    pairs: int = 0
    whole: int = 0
    refused: int = 0
    broken: int = 0


@dataclass(slots=True)
class Seen:
    """All pairs: `alike` under one id, `apart` under two."""

    alike: dict[str, Named] = field(default_factory=dict)
    apart: dict[str, Named] = field(default_factory=dict)


def ways() -> tuple[str, ...]:
    """The ways to name a request."""
    return ("X-Request-Id", *_BODY_FIELDS)


def cost(_known: Known, size: Size) -> Cost:
    """Pairs under one id and under two, and the control fields with a plain request beside each."""
    requests = 2 * 2 * PAIRS * len(ways()) * size.rounds + 1 + len(CONTROL_FIELDS)
    return Cost(
        requests=requests,
        prompt_tokens=requests * prompt_tokens_max(QUOTE_LINES),
        completion_tokens=requests * QUOTE_TOKENS,
        seconds=requests * WAIT_S / 2,
    )


async def run(bench: Bench) -> Outcome:
    """Collide, with controls between; then try the control fields."""
    seen = Seen()
    for way in ways():
        seen.alike[way], seen.apart[way] = Named(), Named()
        for _ in range(PAIRS * bench.size.rounds):
            await _pair(bench, way, seen.apart[way], is_alike=False)
            await _pair(bench, way, seen.alike[way], is_alike=True)
    accepted, notes = await _control_fields(bench)
    return _outcome(bench, seen, accepted, notes)


async def _pair(bench: Bench, way: str, named: Named, *, is_alike: bool) -> None:
    tenants = (bench.tenants[0], bench.tenants[-1])
    first = f"kvf-{bench.random.getrandbits(64):016x}"
    second = first if is_alike else f"kvf-{bench.random.getrandbits(64):016x}"
    markers = [bench.mint(tenant) for tenant in tenants]
    mark = "probe" if is_alike else "control"
    asks = [
        _named(_quoting(bench, marker, mark), way, name)
        for marker, name in zip(markers, (first, second), strict=True)
    ]
    replies = await together(
        bench.ask(tenant, ask, own=(marker,))
        for tenant, ask, marker in zip(tenants, asks, markers, strict=True)
    )
    named.pairs += 1
    named.whole += all(_is_own(reply, marker) for reply, marker in zip(replies, markers, strict=True))
    named.refused += any(reply.failure is Failure.REFUSED for reply in replies)
    named.broken += any(reply.failure in _LOST for reply in replies)
    bench.forget(*markers)


def _quoting(bench: Bench, marker: Marker, mark: str) -> Ask:
    endpoint = copying_endpoint(bench.known)
    prompt = prompts_for(marker, endpoint, lines=QUOTE_LINES).quote
    return Ask(prompt=prompt, mark=mark, endpoint=endpoint, max_tokens=QUOTE_TOKENS, timeout_s=WAIT_S)


def _named(ask: Ask, way: str, name: str) -> Ask:
    if way in _BODY_FIELDS:
        return replace(ask, extra_body={way: name})
    return replace(ask, extra_headers={way: name})


def _is_own(reply: Reply, marker: Marker) -> bool:
    return reply.is_answer and is_shown(marker, reply.content)


async def _control_fields(bench: Bench) -> tuple[list[str], list[str]]:
    """Which fields the server seems to have believed, and what it did with the others."""
    marker = bench.mint("control-fields")
    plain = _quoting(bench, marker, "control")
    reply = await bench.ask(bench.tenants[0], plain, own=(marker,))
    if not reply.is_answer:
        return [], ["control fields were not tried: the same request without them was not answered"]
    accepted, notes = [], []
    for name, fields in CONTROL_FIELDS.items():
        ask = replace(plain, mark="probe", extra_body=dict(fields))
        got = await bench.ask(bench.tenants[0], ask, own=(marker,))
        if got.failure in _LOST:
            accepted.append(name)
        else:
            notes.append(f"{name}: {'refused' if got.failure is Failure.REFUSED else 'ignored'}")
    bench.forget(marker)
    return accepted, notes


def _outcome(bench: Bench, seen: Seen, accepted: list[str], notes: list[str]) -> Outcome:
    sightings = [_accepted(name) for name in accepted]
    refused_ways = []
    for way in ways():
        alike, apart = seen.alike[way], seen.apart[way]
        if alike.broken >= BROKEN_MIN and not apart.broken:
            sightings.append(_collision(way, alike, apart))
        elif alike.refused > apart.refused:
            refused_ways.append(way)
    pairs = sum(named.pairs - named.refused for named in seen.alike.values())
    whole = sum(named.whole for named in seen.alike.values())
    controls = sum(named.whole for named in seen.apart.values())
    asked = sum(named.pairs - named.refused for named in seen.apart.values())
    why = f"{whole} of {pairs} pairs under one id got both their own answers, {controls} of {asked} under two"
    if refused_ways:
        notes.append(f"an id that is in use is refused: {', '.join(refused_ways)}")
    return Outcome(
        verdict=Verdict.EXPOSED if sightings else Verdict.NO_EVIDENCE if pairs else Verdict.INCONCLUSIVE,
        why="; ".join((why, *(sighting.what for sighting in sightings))),
        opportunities=pairs,
        sensitivity=lower_share(controls, asked),
        co_residence=co_residence(bench.known),
        smallest_effect=f"one foreign marker, or {BROKEN_MIN} lost answers of {PAIRS} pairs",
        sightings=tuple(sightings),
        notes=tuple(notes),
    )


def _collision(way: str, alike: Named, apart: Named) -> Sighting:
    return Sighting(
        code="KVF216",
        severity=Severity.HIGH,
        what=f"{alike.broken} of {alike.pairs} pairs with the same {way} lost an answer, none with two",
        subject_key=f"id-{way.lower()}",
        evidence={
            "way": way,
            "pairs": alike.pairs,
            "broken": alike.broken,
            "control_pairs": apart.pairs,
            "control_broken": apart.broken,
        },
        rival="a server that was overloaded in just these moments",
    )


def _accepted(name: str) -> Sighting:
    return Sighting(
        code="KVF215",
        severity=Severity.HIGH,
        what=f"a client's {name} fields changed what became of its request: the server believed them",
        subject_key=f"control-{name}",
        evidence={"fields": name},
        rival="a field of that name that means something else to this server",
    )


SCENARIO = Scenario(
    name="id-collision",
    what="two requests under one client-chosen id; and control fields in a client's body",
    hazard=Hazard.MAY_HARM_OTHERS,
    classes=("id-collision", "control-slot-reuse", "stale-reference"),
    oracle="the other's marker; an answer lost under one id and not under two; a field that is believed",
    control="the same pairs under different ids; the same request without the fields",
    codes=("KVF201", "KVF215", "KVF216"),
    cost=cost,
    run=run,
)
