"""What a watch has seen: counts, evidence, and how Prometheus reads them."""

import json
import random
import re
from pathlib import Path

import msgspec
from tests.check.test_plan import scenario

from kvfence.check.scenario import Outcome, Sighting
from kvfence.check.verdicts import Ended
from kvfence.check.watch_state import WatchState, exposition, take
from kvfence.report import Severity, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples" / "watch"
SIGHTING = Sighting(code="KVF206", severity=Severity.MEDIUM, what="", subject_key="x")


def ended(verdict: Verdict = Verdict.NO_EVIDENCE, p_value: float | None = None, name: str = "one") -> Ended:
    outcome = Outcome(
        verdict=verdict,
        why="",
        opportunities=10,
        sensitivity=0.5,
        co_residence=1.0,
        p_value=p_value,
        sightings=(SIGHTING,) if verdict is Verdict.SUSPECT else (),
    )
    return Ended(scenario=scenario(name), outcome=outcome)


def look(state: WatchState, *ended: Ended) -> tuple[str, ...]:
    return take(state, ended, scenarios=4, now_s=1_000.0)


def test_looks_are_counted_by_verdict_and_code():
    state = WatchState(target="t")
    look(state, ended())
    look(state, ended(Verdict.SUSPECT, 0.5))
    watched = state.scenarios["one"]
    assert watched.verdicts == {"no evidence": 1, "suspect": 1}
    assert watched.findings == {"KVF206": 1}
    assert (watched.effective, watched.last_s) == (10.0, 1_000.0)


def test_what_was_not_tested_is_no_look():
    state = WatchState(target="t")
    look(state, ended(Verdict.NOT_TESTED))
    assert state.scenarios["one"].last_s is None


def test_a_change_becomes_an_alarm_once():
    state = WatchState(target="t")
    alarms = [look(state, ended(Verdict.SUSPECT, 0.001)) for _ in range(30)]
    assert alarms.count(("one",)) == 1


def test_a_healthy_server_raises_none_in_a_month_of_hourly_looks():
    source = random.Random(1)
    alarms = 0
    for _ in range(60):
        state = WatchState(target="t")
        alarms += any(look(state, ended(p_value=1 - source.random())) for _ in range(30 * 24))
    assert alarms <= 1  # a quarter of one per cent of 60: none, as a rule


def test_a_stored_state_goes_on():
    state = WatchState(target="t")
    look(state, ended(Verdict.SUSPECT, 0.01))
    again = msgspec.json.decode(msgspec.json.encode(state), type=WatchState)
    assert again == state
    assert look(state, ended(p_value=0.01)) == look(again, ended(p_value=0.01))
    assert again == state


def test_prometheus_reads_it():
    state = WatchState(target='a "server"\\', requests=7)
    look(state, ended(Verdict.LEAK), ended(p_value=0.5, name="two"))
    text = exposition(state, scenarios=4)
    assert 'kvfence_watch_leaks_total{target="a \\"server\\"\\\\",scenario="one"} 1\n' in text
    assert 'kvfence_watch_requests_total{target="a \\"server\\"\\\\"} 7\n' in text
    sample = re.compile(r'[a-z_0-9]+\{([a-z]+="(\\.|[^"\\])*",?)+\} [0-9.e+-]+')
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in text.splitlines())


def test_a_family_has_its_help_and_type_once():
    state = WatchState(target="t")
    look(state, ended(), ended(name="two"))
    lines = exposition(state, scenarios=4).splitlines()
    types = [line for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


def test_the_examples_name_metrics_that_there_are():
    state = WatchState(target="t")
    look(state, ended(Verdict.SUSPECT, 0.5))
    there = set(re.findall(r"^# TYPE (\S+)", exposition(state, scenarios=4), re.MULTILINE))
    for name in ("alerts.yml", "grafana-dashboard.json"):
        used = set(re.findall(r"kvfence_watch_[a-z_0-9]+", (EXAMPLES / name).read_text()))
        assert used
        assert used <= there


def test_the_dashboard_is_json():
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
