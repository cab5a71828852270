"""What each root-cause class needs to be seen from outside, and what of it cannot be.

Rules it keeps: the 18 classes stand here once. Which scenarios look for a class is read from the scenarios
themselves; one that none looks for has a sentence in `UNSEEN` that says why nobody can. `LIMITS` says, for
those that are looked for, what stays out of sight however long one looks.
"""

from collections.abc import Iterable

from kvfence.check.scenario import Scenario

LIMITS: dict[str, str] = {
    "rejected-continues": (
        "a request that one stage refuses and another goes on with is seen only at lengths and in moments at "
        "which this server refuses; between probed lengths it can hide"
    ),
    "transfer-outlives-pages": (
        "a late write is seen only if its pages were given away within the transfer's last moments, and the "
        "client cannot see when a transfer runs"
    ),
    "step-outlives-pages": (
        "a late step writes one token's slot: most answers do not change by it, so few opportunities count"
    ),
    "false-completion": (
        "a load that fails only when a path breaks is seen only if something breaks: without a command that "
        "breaks it, luck decides"
    ),
    "stale-reference": (
        "references that stay in the server cannot be brought back; only hand-offs that clients are given "
        "can be tried"
    ),
    "control-slot-reuse": "a swapped first token that is equal by chance looks right",
    "id-collision": "ids that the server draws itself cannot be made to collide by a client",
    "key-omits-identity": (
        "only identities that a client can choose can be swapped: names of models and adapters, not the "
        "revision of weights or the type of a cache"
    ),
    "key-collision": (
        "with keys of 64 bits or more, chance shows no collision; to craft one takes the form of the hash"
    ),
    "salt-dropped": (
        "without a second tenant's credential there is nothing to cross; with one, only the tiers that its "
        "prompts reach are tried"
    ),
    "visible-before-written": "the gap lasts as long as one page's write; a burst may always miss it",
    "match-not-pinned": (
        "the gap between match and pin lasts microseconds, and a full pool shows only in cached counts"
    ),
    "offload-mixup": "how large a lower tier is shows nowhere; it may never have been reached",
    "unscrubbed-reuse": (
        "stale state that does not reach the next token changes no answer: recurrent state shows, a masked "
        "slot does not"
    ),
    "padding-touches-live": "which batch sizes are padded is guessed by sizes that are usual",
    "row-mixup": "a swap of two rows that say the same, or of state that no answer hangs on, looks right",
    "response-misroute": "an answer of ours that went to somebody else's client comes back to nobody here",
    "shared-cache-timing": (
        "timing behind a network that is noisier than a prefill shows nothing; the smallest effect is stated"
    ),
}
ROOT_CLASSES = tuple(LIMITS)

# Classes that no scenario looks for, and why none can. There is none at present.
UNSEEN: dict[str, str] = {}


def seen_by(scenarios: Iterable[Scenario]) -> dict[str, tuple[str, ...]]:
    """For each class the names of the scenarios that look for it, in their order."""
    scenarios = tuple(scenarios)
    return {
        root: tuple(scenario.name for scenario in scenarios if root in scenario.classes)
        for root in ROOT_CLASSES
    }


def said_of(root: str, scenarios: Iterable[Scenario]) -> str:
    """One sentence on a class: who looks for it, and what stays out of sight."""
    names = seen_by(scenarios)[root]
    if not names:
        return f"{root}: nothing looks for it here; {UNSEEN.get(root, 'the scenarios for it were left out')}"
    return f"{root}: looked for by {', '.join(names)}; {LIMITS[root]}"
