"""The rules of the audit: each looks at everything that was read and yields findings."""

from kvfence.audit.findings import Rule
from kvfence.audit.rules.capacity import lowered, pool_too_small, unknown
from kvfence.audit.rules.changed import changed, slots_share
from kvfence.audit.rules.exposure import beside_the_router, open_to_anyone, unreachable
from kvfence.audit.rules.handover import (
    deferred_release,
    lease_too_short,
    nothing_connects,
    unbounded_batches,
    unchecked,
)
from kvfence.audit.rules.known import known_vulnerable
from kvfence.audit.rules.limits import advertised_above, limits_differ

RULES: tuple[Rule, ...] = (
    pool_too_small,
    limits_differ,
    advertised_above,
    unknown,
    known_vulnerable,
    deferred_release,
    unbounded_batches,
    unchecked,
    lease_too_short,
    nothing_connects,
    open_to_anyone,
    beside_the_router,
    changed,
    slots_share,
    lowered,
    unreachable,
)

__all__ = [
    "RULES",
    "Rule",
    "advertised_above",
    "beside_the_router",
    "changed",
    "deferred_release",
    "known_vulnerable",
    "lease_too_short",
    "limits_differ",
    "lowered",
    "nothing_connects",
    "open_to_anyone",
    "pool_too_small",
    "slots_share",
    "unbounded_batches",
    "unchecked",
    "unknown",
    "unreachable",
]
