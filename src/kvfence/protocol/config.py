"""Limits and deadlines of the three cores. Frozen, validated when made; times in milliseconds.

Whoever parses flags and files does it elsewhere.
"""

from dataclasses import dataclass

from kvfence.protocol.errors import OperatorError

PAGE_TOKENS = 16
BATCHES_IN_FLIGHT_MAX = 2  # a lease; the bound in time is only fair while little is queued


def _require_positive(owner: str, values: dict[str, int]) -> None:
    for name, value in values.items():
        if value <= 0:
            raise OperatorError(
                f"{owner}.{name} is {value}, but a bound or deadline must be above zero: raise it."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterConfig:
    """What the router may hold, and for how long."""

    context_tokens: int  # what the model and the operator allow, before any pool is asked
    page_tokens: int = PAGE_TOKENS
    request_ms: int = 300_000
    queue_ms: int = 30_000  # waiting for room, then 503
    queue_max: int = 1_024  # requests waiting
    requests_max: int = 4_096  # requests known, those that are closing included
    peers_max: int = 256
    retries_max: int = 1  # recomputes after a node died, when nothing was streamed

    def __post_init__(self) -> None:
        _require_positive(
            "RouterConfig",
            {
                "context_tokens": self.context_tokens,
                "page_tokens": self.page_tokens,
                "request_ms": self.request_ms,
                "queue_ms": self.queue_ms,
                "queue_max": self.queue_max,
                "requests_max": self.requests_max,
                "peers_max": self.peers_max,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillConfig:
    """What a prefill node may hold, and how it posts."""

    page_bytes: int
    page_tokens: int = PAGE_TOKENS
    batch_bytes: int = 8 * 1024 * 1024
    batch_ms: int = 1_000  # posting bound of one batch
    batches_in_flight_max: int = BATCHES_IN_FLIGHT_MAX
    leases_max: int = 1_024
    closed_max: int = 65_536  # remembered closed leases a decode incarnation
    tombstones_max: int = 4_096  # attempts that were aborted before they came
    steps_max: int = 64  # launched and not retired
    peers_max: int = 256

    def __post_init__(self) -> None:
        _require_positive(
            "PrefillConfig",
            {
                "page_bytes": self.page_bytes,
                "page_tokens": self.page_tokens,
                "batch_bytes": self.batch_bytes,
                "batch_ms": self.batch_ms,
                "batches_in_flight_max": self.batches_in_flight_max,
                "leases_max": self.leases_max,
                "closed_max": self.closed_max,
                "tombstones_max": self.tombstones_max,
                "steps_max": self.steps_max,
                "peers_max": self.peers_max,
            },
        )

    @property
    def batch_pages(self) -> int:
        """Pages of one batch: as many as `batch_bytes` holds, but never none."""
        return max(1, self.batch_bytes // self.page_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeConfig:
    """What a decode node may hold, and when it asks its writers to close."""

    page_tokens: int = PAGE_TOKENS
    lease_ms: int = 300_000  # the writer must have closed by then: as long as a request may take
    close_retry_ms: int = 1_000
    close_retries_max: int = 30  # unanswered, then the writer's incarnation is cut
    growth_ms: int = 10_000  # a row waits for quarantined pages
    quarantine_percent_max: int = 50  # of the usable pages; above it admission stops
    leases_max: int = 1_024
    tombstones_max: int = 4_096  # attempts that ended, or were aborted before they came
    steps_max: int = 64  # launched and not retired
    peers_max: int = 256
    writers_max: int = 256  # writer incarnations that are not proven cut

    def __post_init__(self) -> None:
        _require_positive(
            "DecodeConfig",
            {
                "page_tokens": self.page_tokens,
                "lease_ms": self.lease_ms,
                "close_retry_ms": self.close_retry_ms,
                "close_retries_max": self.close_retries_max,
                "growth_ms": self.growth_ms,
                "quarantine_percent_max": self.quarantine_percent_max,
                "leases_max": self.leases_max,
                "tombstones_max": self.tombstones_max,
                "steps_max": self.steps_max,
                "peers_max": self.peers_max,
                "writers_max": self.writers_max,
            },
        )


def pages_for(tokens: int, page_tokens: int) -> int:
    """Return how many pages hold `tokens`."""
    return -(-tokens // page_tokens)
