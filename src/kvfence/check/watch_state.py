"""What a watch has seen so far, and how Prometheus reads it.

Rules it keeps:
- A suspicion is an alarm only when its evidence, over all looks since the watch began, is enough: with so
  many scenarios watched for ever, the chance of even one false alarm stays at most `alpha`.
- A leak needs no statistics: it is told at once.
- The state can be stored and gone on from. Forgetting it would spend the false-alarm rate again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from kvfence.check.statistics_sequential import Evidence, e_of_p
from kvfence.check.verdicts import Ended, bound_of
from kvfence.report import Verdict

ALPHA = 0.01
FORMAT = 1
# A p-value that came out as 0 is a small one that no float holds.
P_VALUE_MIN = 1e-300


class Watched(msgspec.Struct, kw_only=True):
    """One scenario. `effective` sums n · c · d over its looks: opportunities that would have been seen.

    `looks` and `begun` are those of its evidence: only looks with a p-value count there.
    """

    looks: int = 0
    begun: float = 0.0
    effective: float = 0.0
    verdicts: dict[str, int] = {}
    findings: dict[str, int] = {}
    last_s: float | None = None  # of the wall clock, since the epoch


class WatchState(msgspec.Struct, kw_only=True):
    """All scenarios of one target."""

    target: str
    alpha: float = ALPHA
    scenarios: dict[str, Watched] = {}
    requests: int = 0
    is_up: bool = True
    stopped: str | None = None  # why nothing is asked any more
    format: int = FORMAT


def take(state: WatchState, ended: Iterable[Ended], *, scenarios: int, now_s: float) -> tuple[str, ...]:
    """Count what a look came to. Returns the scenarios whose evidence has become enough by it."""
    alarms = []
    for one in ended:
        watched = state.scenarios.setdefault(one.scenario.name, Watched())
        before = evidence_of(watched, state.alpha, scenarios)
        outcome = one.outcome
        verdict = outcome.verdict.value
        watched.verdicts[verdict] = watched.verdicts.get(verdict, 0) + 1
        counts = Counter(sighting.code for sighting in outcome.sightings)
        watched.findings = dict(Counter(watched.findings) + counts)
        bound = bound_of(outcome)
        if bound is not None:
            watched.effective += bound.opportunities * bound.co_residence * bound.sensitivity
        if outcome.p_value is not None:
            after = before.after(e_of_p(max(outcome.p_value, P_VALUE_MIN)))
            watched.looks, watched.begun = after.looks, after.begun
            if after.is_alarm and not before.is_alarm:
                alarms.append(one.scenario.name)
        if outcome.verdict is not Verdict.NOT_TESTED:
            watched.last_s = now_s
    return tuple(alarms)


def evidence_of(watched: Watched, alpha: float, scenarios: int) -> Evidence:
    """A scenario's evidence; it has its share of the false alarms."""
    return Evidence(alpha=alpha / scenarios, looks=watched.looks, begun=watched.begun)


def exposition(state: WatchState, *, scenarios: int) -> str:
    """Return the state in Prometheus' text format (version 0.0.4)."""
    lines: list[str] = []
    target = _quoted(state.target)
    for name, kind, words, samples in _families(state, target, scenarios):
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{labels}}} {value:.10g}" for labels, value in samples]
    return "".join(f"{line}\n" for line in lines)


Family = tuple[str, str, str, list[tuple[str, float]]]


def _families(state: WatchState, target: str, scenarios: int) -> Iterator[Family]:
    of = f'target="{target}"'
    yield "kvfence_watch_up", "gauge", "1 while the target answers.", [(of, float(state.is_up))]
    stopped = float(state.stopped is not None)
    yield "kvfence_watch_stopped", "gauge", "1 when a finding ended the watch.", [(of, stopped)]
    yield "kvfence_watch_requests_total", "counter", "Requests sent.", [(of, float(state.requests))]
    each = [(f'{of},scenario="{_quoted(name)}"', one) for name, one in sorted(state.scenarios.items())]
    yield (
        "kvfence_watch_verdicts_total",
        "counter",
        "Verdicts by scenario.",
        [
            (f'{labels},verdict="{verdict}"', float(count))
            for labels, one in each
            for verdict, count in sorted(one.verdicts.items())
        ],
    )
    yield (
        "kvfence_watch_findings_total",
        "counter",
        "Findings by scenario and code; suspicions included that are no alarm.",
        [
            (f'{labels},code="{code}"', float(count))
            for labels, one in each
            for code, count in sorted(one.findings.items())
        ],
    )
    yield (
        "kvfence_watch_leaks_total",
        "counter",
        "Looks that ended in a leak.",
        [(labels, float(one.verdicts.get(Verdict.LEAK.value, 0))) for labels, one in each],
    )
    evidence = [(labels, evidence_of(one, state.alpha, scenarios)) for labels, one in each]
    yield (
        "kvfence_watch_evidence",
        "gauge",
        "Evidence of a change, 1 on average while all is well.",
        [(labels, one.value) for labels, one in evidence],
    )
    yield (
        "kvfence_watch_alarm",
        "gauge",
        "1 when the evidence is enough.",
        [(labels, float(one.is_alarm)) for labels, one in evidence],
    )
    yield (
        "kvfence_watch_rate_upper_95",
        "gauge",
        "Upper 95 % bound of the rate of leaks, from all looks without one.",
        [(labels, min(1.0, 3 / one.effective)) for labels, one in each if one.effective],
    )
    yield (
        "kvfence_watch_last_look_timestamp_seconds",
        "gauge",
        "When a scenario was last run.",
        [(labels, one.last_s) for labels, one in each if one.last_s is not None],
    )


def _quoted(words: str) -> str:
    """A label's value: backslash, quote and newline are escaped."""
    return words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
