"""Prometheus figures of the whole deployment, rendered by the router.

Latencies are measured where the client is served; what nodes count about themselves arrives with their
hello (`serving.stats`) and is shown under the node's name, as old as that hello.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from kvfence.serving.stats import parse_stat_key

LATENCY_BUCKETS_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
TOKEN_BUCKETS_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 5.0)

HELP = {
    "pool_pages": "KV pool pages by state",
    "pool_tokens": "usable tokens of the KV pool, read back from the allocated buffer",
    "leases": "live leases by state",
    "seals_verified_total": "page seals verified at hand-over",
    "integrity_failures_total": "requests failed by the fence, by reason",
    "refusals_total": "requests refused, by reason",
    "transfer_bytes_total": "bytes written into other nodes' pages",
    "transfer_seconds_total": "seconds from posting a batch to its completion",
    "queue_length": "requests or rows waiting, by queue",
    "quarantine_oldest_seconds": "age of the oldest page in quarantine",
    "preemptions_total": "rows taken out to be recomputed",
    "dropped_messages_total": "control messages dropped, by reason",
    "core_events_total": "what a protocol core counted: refused, ignored, stray, illegal, …",
    "prefill_tokens_total": "prompt tokens computed",
    "prefill_cached_tokens_total": "prompt tokens that the prefix cache had",
    "figures_dropped_total": "figures that found no room in a node's table",
    "unsafe_fence_off": "1 while no check runs on pages: for measuring alone",
    "unsafe_faults": "1 for each fault that is switched on: this deployment leaks data",
    "unsafe_without": "1 for each layer of the fence that is left out: what it would catch goes through",
}

NodeFigures = Mapping[str, tuple[str, Mapping[str, float]]]


class NodeCollector(Collector):
    """Renders `figures()`: node name to (role, key to value)."""

    def __init__(self, figures: Callable[[], NodeFigures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """One family a figure, one sample a node and label set."""
        families: dict[str, list[tuple[dict[str, str], float]]] = {}
        for node, (role, values) in self._figures().items():
            for key, value in values.items():
                name, labels = parse_stat_key(key)
                families.setdefault(name, []).append(({"node": node, "role": role, **labels}, value))
        yield from _render(families)


def _render(
    families: dict[str, list[tuple[dict[str, str], float]]],
) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
    for name, samples in sorted(families.items()):
        kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        labels = sorted({label for sample, _ in samples for label in sample})
        family = kind(f"kvfence_{name}", HELP.get(name, name.replace("_", " ")), labels=labels)
        for sample, value in samples:
            family.add_metric([sample.get(label, "") for label in labels], value)
        yield family


class ServingMetrics:
    """What the HTTP side observes; one instance a router process, with a registry of its own."""

    def __init__(self, figures: Callable[[], NodeFigures]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self.ttft = Histogram(
            "kvfence_ttft_seconds",
            "time to first token, from the arrival of the request",
            buckets=LATENCY_BUCKETS_SECONDS,
            registry=self._registry,
        )
        self.tpot = Histogram(
            "kvfence_tpot_seconds",
            "time per output token after the first, as the router sees them arrive",
            buckets=TOKEN_BUCKETS_SECONDS,
            registry=self._registry,
        )
        self.requests = Counter(
            "kvfence_requests",
            "requests ended, by reason; each choice counts",
            labelnames=["reason"],
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "kvfence_request_seconds",
            "time from the arrival of a request to the end of each choice, however it ended",
            buckets=LATENCY_BUCKETS_SECONDS,
            registry=self._registry,
        )
        self.choices = Counter("kvfence_choices", "choices handed to the router", registry=self._registry)
        self.refusals = Counter(
            "kvfence_client_refusals",
            "requests refused before or at admission, by error code",
            labelnames=["code"],
            registry=self._registry,
        )
        self.tokens = Counter(
            "kvfence_tokens", "tokens by kind", labelnames=["kind"], registry=self._registry
        )
        self._registry.register(NodeCollector(figures))

    def on_request(self, *, prompt_tokens: int, choices: int) -> None:
        """See `serving.streaming.Observer`."""
        self.tokens.labels("prompt").inc(prompt_tokens)
        self.choices.inc(choices)

    def on_first_token(self, seconds: float) -> None:
        """See Observer."""
        self.ttft.observe(seconds)

    def on_token(self, seconds: float) -> None:
        """See Observer."""
        self.tpot.observe(seconds)

    def on_end(self, reason: str, *, seconds: float, completion_tokens: int) -> None:
        """See Observer."""
        self.requests.labels(reason).inc()
        self.request_seconds.observe(seconds)
        self.tokens.labels("completion").inc(completion_tokens)

    def on_refusal(self, code: str) -> None:
        """See Observer."""
        self.refusals.labels(code).inc()

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self._registry)
