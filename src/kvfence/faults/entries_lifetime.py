"""Faults of lifetime: pages, names and processes that somebody still uses after they were given back."""

from kvfence.faults.fault import Fault, Ground, Harm
from kvfence.faults.layers import Layer

_WATCHED = (Layer.SEAL, Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE)
_LATE_WRITE = "The next owner of the pages reads what the earlier one's writer puts there."

TRANSFER = (
    Fault(
        name="transfer-outlives-pages/free-on-deadline",
        bugs=("KVI-007", "KVI-017"),
        decisions=("deadline_is_quiet",),
        what="Decode frees the pages of a lease whose deadline has passed, though its writer has not closed.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
    ),
    Fault(
        name="transfer-outlives-pages/free-on-abort",
        bugs=("KVI-006", "KVI-008"),
        decisions=("abort_is_quiet",),
        what="Decode frees the pages of a request whose client left, while its prompt is being written.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
    ),
    Fault(
        name="transfer-outlives-pages/free-on-loss",
        bugs=("KVI-014",),
        decisions=("lost_is_quiet",),
        what="A writer that is not heard any more is taken for dead: one that was only stopped goes on "
        "writing.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
        runs_on=Ground.WORLD,
    ),
    Fault(
        name="transfer-outlives-pages/free-on-unknown-cut",
        bugs=("KVI-014",),
        decisions=("unknown_cut_is_quiet",),
        what="A cut that could not be proven is taken for proven.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
        runs_on=Ground.WORLD,
    ),
    Fault(
        name="transfer-outlives-pages/free-on-illegal",
        bugs=(),
        decisions=("illegal_is_quiet",),
        what="An event that should not have come ends a lease, and its pages are freed at once.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
        runs_on=Ground.WORLD,
    ),
    Fault(
        name="transfer-outlives-pages/sources-freed-early",
        bugs=("KVI-012", "KVI-013", "KVI-016"),
        decisions=("sources_are_quiet",),
        what="Prefill gives its own pages back while an outgoing write still reads them.",
        leaks="The write takes the next prompt's bytes along, into pages of the request before it.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR),
    ),
    Fault(
        name="transfer-outlives-pages/closed-before-quiet",
        bugs=("KVI-010", "KVI-011"),
        decisions=("posts_are_quiet",),
        what="A writer says that a lease is closed while its writes are in flight: the promise overtakes "
        "the bytes.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
    ),
    Fault(
        name="transfer-outlives-pages/reposted-batch",
        bugs=(),
        decisions=("reposts_at_deadline",),
        what="A batch past its posting bound is posted again, and the first copy is forgotten.",
        leaks="The first copy lands after the row has ended, in pages of the next one.",
        caught_by=_WATCHED,
        runs_on=Ground.WORLD,
    ),
    Fault(
        name="transfer-outlives-pages/close-asked-once",
        bugs=("KVI-031",),
        decisions=("asks_again",),
        what="Decode asks a writer once to close; when that message is lost, nobody answers for the pages.",
        leaks="Nothing leaks: the pages stay in quarantine until somebody restarts the node.",
        caught_by=(Layer.QUARANTINE, Layer.EXPLORER, Layer.SIMULATOR),
        harm=Harm.STALL,
    ),
)

STEPS = (
    Fault(
        name="step-outlives-pages/free-under-step",
        bugs=("KVI-018", "KVI-021", "KVI-022"),
        decisions=("may_free",),
        what="Decode frees pages that a launched step still reads and writes.",
        leaks="The step writes into pages of the next owner, and reads them.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
        runs_on=Ground.WORLD,
    ),
    Fault(
        name="step-outlives-pages/sources-freed-under-step",
        bugs=("KVI-021",),
        decisions=("sources_are_quiet",),
        what="Prefill gives pages back that a launched chunk still writes.",
        leaks="The chunk writes into pages of the next prompt, which overwrites them while a node has one "
        "pass in flight at a time, and would read them with two.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR),
        runs_on=Ground.WORLD,
        harm=Harm.TRESPASS,
    ),
)

REFERENCES = (
    Fault(
        name="stale-reference/late-prefill",
        bugs=("KVI-041",),
        decisions=("refuses_late_prefill",),
        what="A writer that has promised quiet for a lease computes and writes it when its Prefill arrives.",
        leaks=_LATE_WRITE,
        caught_by=(Layer.GUARD, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
    Fault(
        name="stale-reference/incarnation-unchecked",
        bugs=("KVI-042",),
        decisions=("asked_writer", "speaks_for"),
        what="Decode asks whoever bears the writer's name and believes it, so that a restarted prefill node "
        "vouches for its dead self.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
        runs_on=Ground.WORLD,
    ),
    Fault(
        name="stale-reference/pool-adopted",
        bugs=("KVI-042",),
        decisions=("adopts_old_pool",),
        what="A decode node that comes back keeps the memory of its predecessor, and with it whoever still "
        "writes there.",
        leaks=_LATE_WRITE,
        caught_by=_WATCHED,
        runs_on=Ground.WORLD,
    ),
)
