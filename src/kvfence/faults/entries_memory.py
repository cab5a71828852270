"""Faults of memory, rows and answers: what is not cleared, which row reads what, who gets the tokens."""

from kvfence.faults.fault import Fault, Ground, Harm
from kvfence.faults.layers import Layer

MEMORY = (
    Fault(
        name="unscrubbed-reuse/dirty-unused-slots",
        bugs=("KVI-111", "KVI-112"),
        decisions=("zeroes_unused_slots",),
        what="A partly filled page leaves the prefill node with whatever stood in the rest of it.",
        leaks="Bytes of an earlier prompt reach a decode node in the page of another tenant.",
        caught_by=(Layer.SEAL, Layer.EXPLORER, Layer.SIMULATOR),
    ),
    Fault(
        name="unscrubbed-reuse/dirty-added-page",
        bugs=("KVI-111", "KVI-114"),
        decisions=("zeroes_added_pages",),
        what="A page that decode adds to a row keeps what its last owner left.",
        leaks="Masked slots hold another tenant's numbers; one that is not finite changes the answer.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR),
    ),
    Fault(
        name="padding-touches-live/page-zero",
        bugs=("KVI-119", "KVI-121"),
        decisions=("padding_page",),
        what="Page 0 serves as the padding page, and is leased like any other.",
        leaks="What a live row writes there is dropped or overwritten, and it reads the last owner's slots.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
        by_chance=(Layer.SEAL,),
    ),
)

ROWS = (
    Fault(
        name="row-mixup/shifted-tables",
        bugs=("KVI-123", "KVI-128"),
        decisions=("table_row",),
        what="The block tables of a decode step are one row off.",
        leaks="Each row reads and writes the pages of the next one in the batch.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
)

ANSWERS = (
    Fault(
        name="response-misroute/newest-stream",
        bugs=("KVI-136", "KVI-138"),
        decisions=("addressee",),
        what="A token goes to the stream that was opened last, whoever it was made for.",
        leaks="A client reads another one's answer.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE),
    ),
    Fault(
        name="response-misroute/two-attempts",
        bugs=("KVI-134",),
        decisions=("aborts_before_next_attempt", "accepts_token"),
        what="The next attempt is opened without the abort of the one before, whose tokens are still taken.",
        leaks="Nothing of others leaks: one request is computed twice at once, and answered from both.",
        caught_by=(Layer.EXPLORER, Layer.SIMULATOR),
        runs_on=Ground.WORLD,
        harm=Harm.DOUBLE,
    ),
)
