"""Faults of rejection and completion: what goes on though it was refused, what is done though it is not."""

from kvfence.faults.fault import Fault
from kvfence.faults.layers import Layer

REJECTION = (
    Fault(
        name="rejected-continues/incident",
        bugs=("KVI-004", "KVI-001", "KVI-002"),
        decisions=("advertised_tokens", "fits_node", "fit_prompt", "owed_pages"),
        what="The deployment promises its configured context over a smaller prefill pool; a prompt between "
        "the two is rejected in one field, goes on as a one-token placeholder, and is complete when that "
        "token is written.",
        leaks="Decode attends over all the pages that it reserved, of which one slot is the request's own.",
        caught_by=(Layer.MANIFEST, Layer.SEAL, Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
        lifts_capacity=True,
        prefill_pool_only=True,
    ),
    Fault(
        name="rejected-continues/admission-unchecked",
        bugs=("KVI-001",),
        decisions=("advertised_tokens", "fits_node"),
        what="The router promises and places every prompt up to the configured context, whatever the pools "
        "hold.",
        leaks="A node that does not refuse either computes what fits, and decode reads the rest unwritten.",
        caught_by=(
            Layer.REFUSAL,
            Layer.MANIFEST,
            Layer.SEAL,
            Layer.GUARD,
            Layer.EXPLORER,
            Layer.SIMULATOR,
        ),
        lifts_capacity=True,
    ),
    Fault(
        name="rejected-continues/split-state",
        bugs=("KVI-002", "KVI-001"),
        decisions=("fit_prompt", "owed_pages"),
        what="Prefill keeps a rejection in a second field and goes on with a one-token placeholder, which "
        "is complete when its own length is written.",
        leaks="Whenever a prompt that does not fit gets past admission, decode reads pages nobody wrote.",
        caught_by=(
            Layer.ADMISSION,
            Layer.MANIFEST,
            Layer.SEAL,
            Layer.GUARD,
            Layer.EXPLORER,
            Layer.SIMULATOR,
        ),
    ),
    Fault(
        name="rejected-continues/recompute-outgrows-pool",
        bugs=(),
        decisions=("needed_tokens",),
        what="Admission counts the prompt and forgets the answer, so that a request that is preempted and "
        "computed again can be longer than a pool.",
        leaks="The recomputed prompt is cut where a node does not refuse it, and decode reads the rest "
        "unwritten.",
        caught_by=(
            Layer.REFUSAL,
            Layer.MANIFEST,
            Layer.SEAL,
            Layer.EXPLORER,
            Layer.SIMULATOR,
        ),
    ),
)

COMPLETION = (
    Fault(
        name="false-completion/short-transfer",
        bugs=("KVI-035", "KVI-036"),
        decisions=("pages_to_post", "is_written"),
        what="The last page of a prompt is never sent, and done is said when nothing is in flight.",
        leaks="Decode reads what an earlier owner left in that page.",
        caught_by=(
            Layer.MANIFEST,
            Layer.SEAL,
            Layer.GUARD,
            Layer.EXPLORER,
            Layer.SIMULATOR,
            Layer.OUTSIDE,
        ),
    ),
    Fault(
        name="false-completion/whole-claimed",
        bugs=("KVI-033", "KVI-035"),
        decisions=("pages_to_post", "is_written", "claims"),
        what="The last page of a prompt is never sent, and the manifest counts it all the same.",
        leaks="Decode reads what an earlier owner left in that page.",
        caught_by=(Layer.SEAL, Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
    Fault(
        name="false-completion/done-before-written",
        bugs=("KVI-032",),
        decisions=("is_written",),
        what="Done is said when every page was posted, while some are in flight.",
        leaks="Decode reads pages before their bytes have landed.",
        caught_by=(Layer.SEAL, Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
    Fault(
        name="false-completion/failed-write-counts",
        bugs=("KVI-026", "KVI-027", "KVI-028", "KVI-030"),
        decisions=("failed_write_counts",),
        what="A batch that the transport gave up is counted as written.",
        leaks="Decode reads what an earlier owner left in the pages of that batch.",
        caught_by=(Layer.SEAL, Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
)
