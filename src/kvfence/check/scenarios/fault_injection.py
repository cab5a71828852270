"""fault-injection: a command of the user's breaks a path of the server, and markers are looked for meanwhile.

Loads and transfers that failed and are reported done show only when something fails. What can be broken, and
how it is mended, nobody knows but the operator: a command restarts a prefill worker, cuts a transfer's
network, or kills a store, and returns when it has mended that.

Rules it keeps: the command is the user's own words, run without a shell, with a time limit, on a server of
one's own; before, during and after it the same waves of requests that quote their markers are asked. A
failure that says so is what a server should do then, and is no finding. An answer of status 200 that has lost
its marker is suspect; one with another's is a leak.
"""

import asyncio
from asyncio.subprocess import DEVNULL

from kvfence.check.known import Known, Need
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Size
from kvfence.check.scenarios.quoting import (
    AT_ONCE,
    CONTROLS,
    LINES_MAX,
    Tally,
    judged,
    quote_serially,
    quote_wave,
    quotes_cost,
)
from kvfence.protocol.errors import OperatorError, invariant
from kvfence.report import Cost, Verdict

WAVES_BEFORE = 4  # a round
WAVES_DURING_MAX = 20
WAVES_AFTER = 4
HOOK_S_MAX = 120.0


def cost(_known: Known, size: Size) -> Cost:
    """The control, and waves before, during and after each run of the command."""
    waves = size.rounds * (WAVES_BEFORE + WAVES_DURING_MAX + WAVES_AFTER)
    requests = quotes_cost(waves * AT_ONCE, lines=LINES_MAX, at_once=AT_ONCE)
    return quotes_cost(CONTROLS, lines=LINES_MAX) + requests + Cost(seconds=size.rounds * HOOK_S_MAX)


async def run(bench: Bench) -> Outcome:
    """Waves as usual; then the command, with waves beside and after it."""
    hook = bench.known.hook
    invariant(hook, "the scenario needs a command, and is not run without one")
    control, beside, probes = await quote_serially(bench), Tally(), Tally()
    for _ in range(bench.size.rounds):
        for _ in range(WAVES_BEFORE):
            await quote_wave(bench, beside)
        code = await _break(bench, hook or (), probes)
        if code != 0:
            why = f"the command ended with {code}: whether anything broke, or was mended, is not known"
            return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, opportunities=probes.answered)
        for _ in range(WAVES_AFTER):
            await quote_wave(bench, probes)
    notes = (f"{probes.failed} of {probes.asked} requests failed while or after something was broken",)
    return judged(bench, probes, beside, control, key="fault", what="answers around a failure", notes=notes)


async def _break(bench: Bench, hook: tuple[str, ...], probes: Tally) -> int | None:
    """Run the command with waves beside it. Returns its exit code, None when it took too long."""
    try:
        process = await asyncio.create_subprocess_exec(*hook, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    except OSError as error:
        raise OperatorError(
            f"the profile's `hook` could not be started: {error.strerror}; give the path of a program, and "
            "its arguments, as a list"
        ) from error
    try:
        ended = asyncio.ensure_future(process.wait())
        for _ in range(WAVES_DURING_MAX):
            if ended.done():
                break
            await quote_wave(bench, probes)
        async with asyncio.timeout(HOOK_S_MAX):
            return await ended
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


SCENARIO = Scenario(
    name="fault-injection",
    what="markers while a command of the user's breaks a path of the server",
    hazard=Hazard.MAY_HARM_OTHERS,
    classes=("false-completion", "transfer-outlives-pages", "stale-reference", "offload-mixup"),
    oracle="a foreign marker; or own markers lost in answers of status 200 more often than before",
    control="the same waves before anything is broken",
    codes=("KVF201", "KVF206"),
    cost=cost,
    run=run,
    needs=frozenset({Need.OWN_SERVER, Need.HOOK}),
)
