"""marker-sweep: another's marker stops it, a healthy server gets a bound, a deaf model shows nothing."""

import pytest
from tests.check.scenarios.quote_server import Leaking, copying, deaf, played
from tests.check.scripted_bench import plain_known, refused

from kvfence.check.known import Need
from kvfence.check.scenario import Size
from kvfence.check.scenarios.marker_sweep import COMPARED, SCENARIO
from kvfence.check.scenarios.quoting import CONTROLS
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


@pytest.mark.parametrize("has", [frozenset(Need), frozenset()])
def test_a_server_that_mixes_up_is_stopped_at(has):
    with pytest.raises(ForeignMarkerSeen):
        played(SCENARIO, Leaking(), known=plain_known(has=has))


def test_a_healthy_server():
    outcome, bench = played(SCENARIO, copying, size=Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    probes = [sent for sent in bench.asked if sent.ask.mark != "control"]
    assert len(probes) == 64
    assert outcome.sensitivity == 1
    assert bench.most_at_once == 8
    assert {sent.tenant for sent in probes} == {"a", "b"}
    assert any(sent.ask.hang_up_after_chunks for sent in probes)
    assert len({sent.own for sent in bench.asked}) == len(bench.asked)


def test_a_model_that_quotes_nothing_is_inconclusive():
    outcome, _ = played(SCENARIO, deaf)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "never quoted its own marker" in outcome.why


def test_a_server_that_refuses_under_load_is_inconclusive():
    outcome, _ = played(
        SCENARIO, lambda sent: copying(sent) if sent.ask.mark == "control" else refused(status=503)
    )
    assert outcome.verdict is Verdict.INCONCLUSIVE


def test_markers_that_are_lost_at_once_are_suspect():
    """Tokens of all answers went to one client: no piece is long enough to be another's for sure."""
    outcome, _ = played(SCENARIO, lambda sent: copying(sent) if sent.ask.mark == "control" else deaf(sent))
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.sightings[0].code == "KVF206"
    assert outcome.p_value < 0.001


def test_a_third_that_is_lost_at_once_needs_controls_to_be_seen():
    """The last page of every third prompt never came. Four serial answers would prove nothing."""

    def short(sent):
        return deaf(sent) if sent.ask.mark == "probe" and sent.number % 3 == 0 else copying(sent)

    outcome, bench = played(SCENARIO, short, size=Size(rounds=2))
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.p_value < 0.001
    controls = [sent for sent in bench.asked if sent.ask.mark == "control"]
    assert len(controls) == CONTROLS + 2 * COMPARED
    # The short control is quoted more easily than what is sent at once, and is not compared with it.
    assert outcome.sightings[0].evidence["control_answers"] == 2 * COMPARED


def test_a_model_that_loses_as_many_alone_is_not_suspect():
    outcome, _ = played(
        SCENARIO,
        lambda sent: deaf(sent) if sent.number % 3 == 0 else copying(sent),
        size=Size(rounds=2),
    )
    assert outcome.verdict is Verdict.NO_EVIDENCE


def test_a_healthy_server_pays_for_no_more_controls():
    _, bench = played(SCENARIO, copying)
    assert [sent.ask.mark for sent in bench.asked].count("control") == CONTROLS


def test_prompts_end_at_different_places_of_a_page():
    _, bench = played(SCENARIO, copying)
    lengths = {sent.tokens % 16 for sent in bench.asked if sent.ask.mark != "control"}
    assert len(lengths) > 8


def test_one_key_is_one_tenant_and_still_looks():
    with pytest.raises(ForeignMarkerSeen):
        played(SCENARIO, Leaking(), tenants=("a",))
