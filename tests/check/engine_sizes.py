"""How each fault of the catalogue gets its chance on real processes: sizes, scenarios, and what stays unseen.

Data alone. A fault that is in `BLIND` is not played: its sentence says why nobody could see it from outside.
All the others are, and what is not found is said as it is.
"""

from kvfence.check.scenario import Scenario
from kvfence.check.scenarios import SCENARIOS
from kvfence.faults import CATALOGUE, Harm

SMALL = ("--context", "2048", "--pool-tokens", "6144")
# Pages change hands within a few requests.
TIGHT = ("--context", "2048", "--pool-tokens", "2560")
BAND = ("--context", "2048", "--prefill-pool-tokens", "1328", "--decode-pool-tokens", "4096")
# Prefill takes many steps, so that there is a middle of it to leave in, or to be late in.
CHUNKED = (*TIGHT, "--chunk-tokens", "64")
# Where the last page of a prompt is wrong, it is a line of it, and not all of it.
LINE_PAGES = (*TIGHT, "--page-tokens", "32")
# Who was given pages of a prompt that is still written computes on another node, and is not behind it.
TWO_WRITERS = ("--prefill", "2")
# A transfer goes through a socket, page by long page, behind what the control plane says of it. Prompts wait
# for pages, so that one is given away as soon as it is free.
SLOW_TRANSFER = ("--context", "2048", "--pool-tokens", "2048", "--page-tokens", "256", "--transport", "tcp")

SIZES: dict[str, tuple[str, ...]] = {
    "rejected-continues/incident": BAND,
    # What fits is computed: so little of a prompt that its time alone tells.
    "rejected-continues/admission-unchecked": (
        *("--context", "2048", "--prefill-pool-tokens", "640", "--decode-pool-tokens", "4096"),
    ),
    "rejected-continues/split-state": BAND,
    "rejected-continues/recompute-outgrows-pool": (
        *("--context", "1024", "--prefill-pool-tokens", "1024", "--decode-pool-tokens", "2048"),
    ),
    "false-completion/short-transfer": LINE_PAGES,
    "false-completion/whole-claimed": LINE_PAGES,
    "false-completion/done-before-written": SLOW_TRANSFER,
    "false-completion/failed-write-counts": (*SLOW_TRANSFER, "--posting-timeout-s", "0.01"),
    "transfer-outlives-pages/free-on-deadline": (*CHUNKED, *TWO_WRITERS, "--lease-timeout-s", "0.5"),
    "transfer-outlives-pages/free-on-abort": (*CHUNKED, *TWO_WRITERS),
    "transfer-outlives-pages/closed-before-quiet": (*SLOW_TRANSFER, *TWO_WRITERS),
    "transfer-outlives-pages/sources-freed-early": (*SLOW_TRANSFER, "--no-prefix-cache"),
    "stale-reference/late-prefill": (*CHUNKED, *TWO_WRITERS),
    "id-collision/lease-number-reused": TIGHT,
    "visible-before-written/published-early": CHUNKED,
    "match-not-pinned/unpinned-match": TIGHT,
}
HEALTHY: dict[str, tuple[str, ...]] = {
    "1p1d": ("--context", "2048"),
    "2p2d": ("--context", "2048", "--prefill", "2", "--decode", "2"),
    "tiny-pool": SMALL,
    "preempting": TIGHT,
    "no-prefix-cache": (*SMALL, "--no-prefix-cache"),
}
# Scenarios that a fault's mechanism lets see it, though its class is not among theirs.
ALSO: dict[str, tuple[str, ...]] = {
    "stale-reference/late-prefill": ("abort-refill",),
    "key-omits-identity/chain-dropped": ("one-word",),
    "transfer-outlives-pages/sources-freed-early": ("marker-sweep",),
    "transfer-outlives-pages/closed-before-quiet": ("marker-sweep",),
}
# Two want something that a deployment of ours has not: a command that breaks it, a hand-off in the open. And
# the default model fails the third one's control: it does not choose rightly from a short prompt either.
OUT_OF_PLACE = frozenset(("fault-injection", "stale-handoff", "long-recall"))
# What cannot see a class here: these read counts and times, or the first token, which prefill samples itself.
PAST_IT: dict[str, frozenset[str]] = {
    "false-completion": frozenset(("plausibility", "first-token")),
    "rejected-continues": frozenset(("plausibility",)),
}
# What is exposed and not leaked is a finding for these alone.
EXPOSING = (Harm.REUSE, Harm.STALL, Harm.DOUBLE)

BLIND: dict[str, str] = {
    "transfer-outlives-pages/close-asked-once": (
        "nothing leaks, and the pages stay away only when a Close is lost: between living processes of one "
        "machine none is"
    ),
    "unscrubbed-reuse/dirty-unused-slots": (
        "the bytes reach the other node in slots that are masked, and numbers behind a mask change no answer "
        "while they are finite, as an engine's own always are"
    ),
    "unscrubbed-reuse/dirty-added-page": (
        "what the last owner left stands in slots that are masked until the row writes them, and numbers "
        "behind a mask change no answer while they are finite, as an engine's own always are"
    ),
}


def faults_outside() -> list[str]:
    """The faults of the catalogue that real nodes get to, and of which the outside can know."""
    return [name for name, fault in CATALOGUE.items() if fault.runs_on_engine and name not in BLIND]


def scenarios_for(name: str) -> tuple[str, ...]:
    """The scenarios that can see a fault, in the order of a run."""
    cause = CATALOGUE[name].root_cause
    left_out = OUT_OF_PLACE | PAST_IT.get(cause, frozenset())

    def sees(scenario: Scenario) -> bool:
        return cause in scenario.classes or scenario.name in ALSO.get(name, ())

    return tuple(one.name for one in SCENARIOS.values() if sees(one) and one.name not in left_out)
