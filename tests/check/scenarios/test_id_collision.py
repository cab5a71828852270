"""id-collision: ids that are used as keys lose answers or mix them up; ids that are echoed do neither."""

import pytest
from tests.check.scripted_bench import ScriptedBench, answered, play, refused, silent

from kvfence.check.scenarios.id_collision import CONTROL_FIELDS, SCENARIO, ways
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


def quoting(sent):
    return answered(f"{sent.own[0].text} and so on", total_s=0.1)


def name_of(sent):
    named = sent.ask.extra_headers | sent.ask.extra_body
    return next((str(named[way]) for way in ways() if way in named), None)


class Keyed:
    """A server that does something when two in flight have one name."""

    def __init__(self, collide):
        self.collide, self.bench = collide, None

    def __call__(self, sent):
        name = name_of(sent)
        others = [other for other in self.bench.in_flight_with(sent) if name and name_of(other) == name]
        return self.collide(sent, others[0]) if others else quoting(sent)


def collide(script):
    bench = ScriptedBench(script)
    if isinstance(script, Keyed):
        script.bench = bench
    return play(SCENARIO, bench), bench


def test_the_others_marker_stops_the_run():
    with pytest.raises(ForeignMarkerSeen):
        collide(Keyed(lambda sent, other: answered(other.own[0].text, total_s=0.1)))


def test_an_answer_that_is_lost_is_the_id_used_as_a_key():
    def loses(sent, other):
        return silent(30.0) if sent.number > other.number else quoting(sent)

    outcome, _ = collide(Keyed(loses))
    assert outcome.verdict is Verdict.EXPOSED
    assert [one.code for one in outcome.sightings] == ["KVF216"] * 4
    assert "same rid" in outcome.why


def test_only_the_header():
    outcome, _ = collide(
        Keyed(lambda sent, _: refused(status=500) if sent.ask.extra_headers else quoting(sent))
    )
    assert [one.subject_key for one in outcome.sightings] == ["id-x-request-id"]


def test_a_healthy_server():
    outcome, bench = collide(quoting)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert (outcome.opportunities, outcome.sensitivity) == (12, 1.0)
    assert outcome.notes == ("bootstrap: ignored", "kv_transfer_params: ignored")
    assert bench.most_at_once == 2
    assert bench.markers in ((), [])


def test_a_server_that_refuses_unknown_fields_and_ids_in_use():
    def strict(sent):
        return refused("unknown field") if sent.ask.extra_body else quoting(sent)

    outcome, _ = collide(strict)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.opportunities == 3
    assert outcome.notes == ("bootstrap: refused", "kv_transfer_params: refused")
    in_use, _ = collide(Keyed(lambda sent, _: refused("this id is in use")))
    assert in_use.verdict is Verdict.INCONCLUSIVE
    assert "X-Request-Id" in in_use.notes[-1]


@pytest.mark.parametrize("field", list(CONTROL_FIELDS))
def test_a_field_that_is_believed_is_exposed(field):
    wanted = next(iter(CONTROL_FIELDS[field]))

    def believes(sent):
        return silent(30.0) if wanted in sent.ask.extra_body else quoting(sent)

    outcome, _ = collide(believes)
    assert outcome.verdict is Verdict.EXPOSED
    assert [one.subject_key for one in outcome.sightings] == [f"control-{field}"]


def test_a_server_that_loses_everything_has_no_collisions():
    outcome, _ = collide(lambda _sent: refused(status=500))
    assert not outcome.sightings
    assert outcome.sensitivity is None
    assert any("were not tried" in note for note in outcome.notes)
