"""The root causes of KV isolation bugs, one sentence each, and those that cannot be expressed here.

The classes are our own reading of public reports; every fault belongs to one.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RootCause:
    """One class. `absent_because` None: the catalogue has a fault of it."""

    name: str
    what: str
    absent_because: str | None = None


ROOT_CAUSES: dict[str, RootCause] = {
    cause.name: cause
    for cause in (
        RootCause("rejected-continues", "what was refused goes on, over pages that nobody wrote for it"),
        RootCause("transfer-outlives-pages", "a transfer is in flight when its pages are given to another"),
        RootCause("step-outlives-pages", "a launched step uses pages that are given to another"),
        RootCause("false-completion", "what failed or is not finished is reported as done"),
        RootCause("stale-reference", "a name is used after what it named is gone"),
        RootCause("control-slot-reuse", "the small side channel of a transfer has several writers"),
        RootCause("id-collision", "two live things share a name"),
        RootCause("key-omits-identity", "a cache key leaves out what changes the KV"),
        RootCause("key-collision", "different content can have the same cache key"),
        RootCause("salt-dropped", "a tenant's scope is not carried into a tier of the cache"),
        RootCause("visible-before-written", "a page is shown to others before its bytes are written"),
        RootCause("match-not-pinned", "what a lookup found is evicted before it is used"),
        RootCause(
            "offload-mixup",
            "a copy to or from a lower tier is unordered, cut short, or of another entry",
            absent_because="pages have one tier here: there is no kvfence.kv module that copies pages to "
            "processor memory, disk or a remote store and back, so that no copy of one can be mixed up",
        ),
        RootCause("unscrubbed-reuse", "what is read before it is written is handed on without clearing"),
        RootCause("padding-touches-live", "padding rows read or write slots of live requests"),
        RootCause("row-mixup", "state is looked up by a row of the batch that has moved"),
        RootCause("response-misroute", "what was computed rightly reaches another caller"),
        RootCause("shared-cache-timing", "hits and misses of a shared cache tell what others sent"),
    )
}
