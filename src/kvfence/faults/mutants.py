"""Which mutant stands for which fault, and how any set of them becomes what the cores ask.

They are mixed into one class in the order of their names, faults before layers that are switched off, so
that a fault does what it does whichever layers watch. The mutants themselves stand in small files by role.
"""

from collections.abc import Collection, Sequence

from kvfence.faults import mutants_decode as decode
from kvfence.faults import mutants_prefill as prefill
from kvfence.faults import mutants_prefix as prefix
from kvfence.faults import mutants_router as router
from kvfence.faults.catalogue import fault_named
from kvfence.faults.layers import Layer, switched_off
from kvfence.protocol import Decisions

MUTANTS: dict[str, type[Decisions]] = {
    "rejected-continues/incident": prefill.Incident,
    "rejected-continues/admission-unchecked": router.AdmissionUnchecked,
    "rejected-continues/split-state": prefill.SplitState,
    "rejected-continues/recompute-outgrows-pool": router.RecomputeOutgrowsPool,
    "false-completion/short-transfer": prefill.ShortTransfer,
    "false-completion/whole-claimed": prefill.WholeClaimed,
    "false-completion/done-before-written": prefill.DoneBeforeWritten,
    "false-completion/failed-write-counts": prefill.FailedWriteCounts,
    "transfer-outlives-pages/free-on-deadline": decode.FreeOnDeadline,
    "transfer-outlives-pages/free-on-abort": decode.FreeOnAbort,
    "transfer-outlives-pages/free-on-loss": decode.FreeOnLoss,
    "transfer-outlives-pages/free-on-unknown-cut": decode.FreeOnUnknownCut,
    "transfer-outlives-pages/free-on-illegal": decode.FreeOnIllegal,
    "transfer-outlives-pages/sources-freed-early": prefill.SourcesFreedEarly,
    "transfer-outlives-pages/closed-before-quiet": prefill.ClosedBeforeQuiet,
    "transfer-outlives-pages/reposted-batch": prefill.RepostedBatch,
    "transfer-outlives-pages/close-asked-once": decode.CloseAskedOnce,
    "step-outlives-pages/free-under-step": decode.FreeUnderStep,
    "step-outlives-pages/sources-freed-under-step": prefill.SourcesFreedUnderStep,
    "stale-reference/late-prefill": prefill.LatePrefill,
    "stale-reference/incarnation-unchecked": decode.IncarnationUnchecked,
    "stale-reference/pool-adopted": decode.PoolAdopted,
    "control-slot-reuse/first-token-slot": prefill.FirstTokenSlot,
    "id-collision/lease-number-reused": decode.LeaseNumberReused,
    "key-omits-identity/chain-dropped": prefix.ChainDropped,
    "key-collision/short-key": prefix.ShortKey,
    "salt-dropped/domain-ignored": prefix.DomainIgnored,
    "visible-before-written/published-early": prefix.PublishedEarly,
    "match-not-pinned/unpinned-match": prefix.UnpinnedMatch,
    "unscrubbed-reuse/dirty-unused-slots": prefill.DirtyUnusedSlots,
    "unscrubbed-reuse/dirty-added-page": decode.DirtyAddedPage,
    "padding-touches-live/page-zero": decode.PageZero,
    "row-mixup/shifted-tables": decode.ShiftedTables,
    "response-misroute/newest-stream": router.NewestStream,
    "response-misroute/two-attempts": router.TwoAttempts,
    "shared-cache-timing/one-domain": router.OneDomain,
}


def faulty_decisions(names: Sequence[str], layers_off: Collection[Layer] = ()) -> type[Decisions]:
    """The class of decisions with these faults on and these layers off.

    Raises OperatorError for a name that is none, and for a layer that has no switch.
    """
    mutants = tuple(MUTANTS[fault_named(name).name] for name in sorted(set(names)))
    mixed = (*mutants, *switched_off(layers_off))
    return type("FaultyDecisions", (*mixed, Decisions), {}) if mixed else Decisions
