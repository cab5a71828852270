"""cross-tenant-reuse: does what one tenant sent make another tenant's same prompt faster, or "cached"?

Rules it keeps:
- Four controls in every block. A's own repeat hits, or nothing could be seen; the same for B's own; what
  nobody sent before is cold; and A's repeat after B's probe still hits: what was primed was still there
  (residency), else the block says nothing.
- Counts come first: cached tokens of B's probe against B's cold prompts, by Fisher, twenty a side. A count
  above the prompt is rejected. A count of 0 never proves a cold answer, so timing comes second.
- Timing stands on coins: in each block the order of probe and cold prompt is drawn, differences are tested by
  a randomisation test, and below a minimum effect that was stated before nothing is a finding.
- Reuse across tenants is an exposure, not a leak: nothing wrong was returned, but who asks learns what was
  asked before.
"""

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Size
from kvfence.check.scenarios.cross_tenant_reuse_outcome import Block, outcome_of
from kvfence.check.scenarios.filler import filler, nonce
from kvfence.report import Cost

BLOCKS = 20  # a round: twenty a side
ASKS_A_BLOCK = 5
PROMPT_TOKENS_MAX = 768
CONTEXT_IF_UNKNOWN = 8_192
ASK_S = 5.0


def prompt_tokens(known: Known) -> int:
    """Long enough for prefill to show, and at most an eighth of the context."""
    return min(PROMPT_TOKENS_MAX, (known.context_tokens or CONTEXT_IF_UNKNOWN) // 8)


def cost(known: Known, size: Size) -> Cost:
    """Blocks of five requests, one at a time."""
    requests = BLOCKS * ASKS_A_BLOCK * size.rounds
    return Cost(
        requests=requests,
        # A counter that is not exact may be off, and a template adds some.
        prompt_tokens=int(requests * (prompt_tokens(known) + 40) * (1 + known.counter.error)),
        completion_tokens=requests,
        seconds=requests * ASK_S,
    )


async def run(bench: Bench) -> Outcome:
    """Block after block, one request at a time; then counts, then times."""
    blocks = [await _block(bench) for _ in range(BLOCKS * bench.size.rounds)]
    return outcome_of(bench, blocks)


async def _block(bench: Bench) -> Block:
    """A primes; B asks the same and something cold, in drawn order; B and A each repeat their own."""
    first, second = bench.tenants[:2]
    primed, cold = _prompt(bench), _prompt(bench)
    prime = await _ask(bench, first, primed, "prime")
    probe: Reply
    if bench.random.random() < 0.5:
        probe = await _ask(bench, second, primed, "probe")
        control = await _ask(bench, second, cold, "control")
    else:
        control = await _ask(bench, second, cold, "control")
        probe = await _ask(bench, second, primed, "probe")
    own = await _ask(bench, second, cold, "control")
    resident = await _ask(bench, first, primed, "control")
    return Block(prime=prime, probe=probe, cold=control, own_repeat=own, resident=resident)


def _prompt(bench: Bench) -> str:
    tokens = prompt_tokens(bench.known)
    return f"{nonce(bench.random)} {filler(tokens, bench.random, bench.known.counter.count)}"


async def _ask(bench: Bench, tenant: str, prompt: str, mark: str) -> Reply:
    return await bench.ask(tenant, Ask(prompt=prompt, mark=mark, max_tokens=1))


SCENARIO = Scenario(
    name="cross-tenant-reuse",
    what="whether one tenant's prompt is cached for another",
    hazard=Hazard.ORDINARY,
    classes=("salt-dropped", "shared-cache-timing"),
    oracle="cached counts by Fisher's test; then times to first token by order-randomised blocks",
    control="own repeats of both tenants, prompts that nobody sent, and residency after each probe",
    codes=("KVF207", "KVF208"),
    cost=cost,
    run=run,
    needs=frozenset({Need.TWO_TENANTS, Need.STREAMING}),
)
