"""In which scope the explorer finds each fault, and what it finds there.

Every fault of the catalogue has an entry. Where a layer of the fence would refuse before anything can go
wrong, the entry says which layers are off; `stays_away` is for what never comes home, and is found by the
search for a way home instead.
"""

from dataclasses import dataclass

from kvfence.faults import Layer
from kvfence.protocol import DecodeFact, DecodeState
from kvfence.world import Kind


@dataclass(frozen=True, slots=True)
class FaultScope:
    """Where, what, and with which layers off."""

    scope: str
    kind: Kind
    layers_off: tuple[Layer, ...] = ()

    @property
    def stays_away(self) -> bool:
        """Whether it is found by what never comes home."""
        return self.kind is Kind.NOT_HOME


@dataclass(frozen=True, slots=True)
class FenceScope:
    """Where layers that detect do their work: a fault is on, and they are too; findings do not end it.

    `rows` of the decode table are taken there, and nowhere without a fault. What its pages come to is seen
    by `verification.reaching`.
    """

    scope: str
    faults: tuple[str, ...]
    rows: frozenset[tuple[DecodeState, DecodeFact]]


# A foreign or torn seal is seen at hand-over, after its end, and by the guard of a step. Its page is set
# apart and comes home when every writer is cut. The other rows of the guard (WAITING, CLOSING, ABSENT) need
# an executor that speaks of a row which it was told to stop: that of a world does not.
POISON = FenceScope(
    "poison",
    ("transfer-outlives-pages/free-on-abort",),
    frozenset(
        (
            (DecodeState.VERIFYING, DecodeFact.SEALS_BAD),
            (DecodeState.CLOSING, DecodeFact.SEALS_BAD),
            (DecodeState.RUNNING, DecodeFact.GUARD_BAD),
        )
    ),
)

FAULT_SCOPES: dict[str, FaultScope] = {
    "rejected-continues/incident": FaultScope("limits", Kind.LAW),
    "rejected-continues/admission-unchecked": FaultScope("limits", Kind.LAW),
    "rejected-continues/split-state": FaultScope("limits", Kind.LAW, (Layer.ADMISSION,)),
    "rejected-continues/recompute-outgrows-pool": FaultScope("limits", Kind.LAW),
    "false-completion/short-transfer": FaultScope("pages", Kind.FENCE),
    "false-completion/whole-claimed": FaultScope("pages", Kind.FENCE),
    "false-completion/done-before-written": FaultScope("leave", Kind.LAW),
    "false-completion/failed-write-counts": FaultScope("no-proof", Kind.FENCE),
    "transfer-outlives-pages/free-on-deadline": FaultScope("late-writer", Kind.LATE_WRITE),
    "transfer-outlives-pages/free-on-abort": FaultScope("leave", Kind.LATE_WRITE),
    "transfer-outlives-pages/free-on-loss": FaultScope("suspect", Kind.LATE_WRITE),
    "transfer-outlives-pages/free-on-unknown-cut": FaultScope("cut-fails", Kind.LATE_WRITE),
    "transfer-outlives-pages/free-on-illegal": FaultScope("stray", Kind.LATE_WRITE),
    "transfer-outlives-pages/sources-freed-early": FaultScope("sources", Kind.FOREIGN_SOURCE),
    "transfer-outlives-pages/closed-before-quiet": FaultScope("leave", Kind.LAW),
    "transfer-outlives-pages/reposted-batch": FaultScope("slow-batch", Kind.LATE_WRITE),
    "transfer-outlives-pages/close-asked-once": FaultScope("smoke", Kind.NOT_HOME),
    "step-outlives-pages/free-under-step": FaultScope("steps", Kind.LATE_STEP),
    "step-outlives-pages/sources-freed-under-step": FaultScope("leave", Kind.LATE_STEP),
    "stale-reference/late-prefill": FaultScope("leave", Kind.LAW),
    "stale-reference/incarnation-unchecked": FaultScope("crash-prefill", Kind.LATE_WRITE),
    "stale-reference/pool-adopted": FaultScope("crash-decode", Kind.LATE_WRITE),
    "control-slot-reuse/first-token-slot": FaultScope("pair", Kind.WRONG_TOKEN),
    "id-collision/lease-number-reused": FaultScope("repeat", Kind.FENCE),
    "key-omits-identity/chain-dropped": FaultScope("chain", Kind.FOREIGN_SOURCE),
    "key-collision/short-key": FaultScope("collision", Kind.FOREIGN_SOURCE),
    "salt-dropped/domain-ignored": FaultScope("domains", Kind.FOREIGN_SOURCE),
    "visible-before-written/published-early": FaultScope("shared-prefix", Kind.LAW),
    "match-not-pinned/unpinned-match": FaultScope("shared-prefix", Kind.LAW),
    "unscrubbed-reuse/dirty-unused-slots": FaultScope("unused-slots", Kind.DIRTY_PAGE),
    "unscrubbed-reuse/dirty-added-page": FaultScope("growth", Kind.DIRTY_PAGE),
    "padding-touches-live/page-zero": FaultScope("pages", Kind.PADDING_WRITE),
    "row-mixup/shifted-tables": FaultScope("growth", Kind.FOREIGN_READ),
    "response-misroute/newest-stream": FaultScope("pages", Kind.WRONG_TOKEN),
    "response-misroute/two-attempts": FaultScope("crash-prefill", Kind.TWO_ATTEMPTS),
    "shared-cache-timing/one-domain": FaultScope("domains", Kind.FOREIGN_SOURCE),
}
