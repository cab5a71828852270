"""Root causes: who of a run looked for each, and what of it stays out of sight from outside.

Rules it keeps: the 18 classes stand here once, each with what cannot be seen of it however long one looks. A
scenario that was not tested did not look. What a scenario can see is read from its own end, so that the
reports of a run need nothing but its events.
"""

from dataclasses import dataclass

from kvfence.report.digest import Digest
from kvfence.report.finding import Verdict

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
        "breaks it, luck decides; and one page that never came shows where it holds a short prompt, hardly "
        "where it is one of many that say the same"
    ),
    "stale-reference": (
        "references that stay in the server cannot be brought back; only hand-offs that clients are given "
        "can be tried"
    ),
    "control-slot-reuse": "a swapped first token that is equal by chance looks right",
    "id-collision": "ids that the server draws itself cannot be made to collide by a client",
    "key-omits-identity": (
        "only identities that a client can choose can be swapped: names of models and adapters, not the "
        "revision of weights or the type of a cache; and it shows only in counts of cached tokens"
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


@dataclass(frozen=True, slots=True)
class Looked:
    """One class in one run. `verdicts` are those of the scenarios that looked for it, in their order."""

    root: str
    verdicts: tuple[tuple[str, Verdict], ...]
    limit: str


def looked_for(digest: Digest) -> tuple[Looked, ...]:
    """Every class, with the scenarios of this run that looked for it: perhaps none."""
    ends = [
        story.ended
        for story in digest.scenarios
        if story.ended is not None and story.ended.verdict is not Verdict.NOT_TESTED
    ]
    return tuple(
        Looked(root, tuple((end.scenario, end.verdict) for end in ends if root in end.classes), limit)
        for root, limit in LIMITS.items()
    )
