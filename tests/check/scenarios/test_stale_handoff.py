"""stale-handoff: what an expired hand-off is answered with."""

import asyncio

import pytest
from tests.check.scenarios.quote_server import copying, deaf, last_line
from tests.check.scripted_bench import ScriptedBench, answered, plain_known, play, refused

from kvfence.check.scenario import Size
from kvfence.check.scenarios.stale_handoff import HANDOFFS, SCENARIO, wait_s
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Severity, Verdict

LEASE_S = 30.0


class Pair:
    """Prefill and decode: pages are kept for a lease, then the next prompts have them. `stale` answers then."""

    def __init__(self, stale, **options):
        self.stale, self.lease_s = stale, LEASE_S
        self.kept, self.others = {}, []
        self.bench = ScriptedBench(self, **options)

    def __call__(self, sent):
        now = asyncio.get_running_loop().time()
        fields = sent.ask.extra_body.get("kv_transfer_params", {})
        if fields.get("do_remote_decode"):
            name = f"r-{sent.number}"
            self.kept[name] = (now + self.lease_s, last_line(sent))
            return answered("x", handoff={"do_remote_prefill": True, "remote_request_id": name})
        if fields.get("do_remote_prefill"):
            until, line = self.kept.get(fields["remote_request_id"], (0.0, None))
            if line is None:
                return refused("no such request", status=500)
            return answered(line) if now < until else self.stale(self, sent, line)
        self.others.append(last_line(sent))
        return copying(sent)


def test_anothers_pages_are_a_leak():
    with pytest.raises(ForeignMarkerSeen):
        play(SCENARIO, Pair(lambda pair, _sent, _line: answered(pair.others[-1])).bench)


def test_a_confident_answer_of_something_else_is_an_exposure():
    outcome = play(SCENARIO, Pair(lambda _pair, _sent, _line: answered("and so on and on")).bench)
    assert outcome.verdict is Verdict.EXPOSED
    (sighting,) = outcome.sightings
    assert (sighting.code, sighting.severity) == ("KVF219", Severity.HIGH)
    assert sighting.evidence["stale_other"] == HANDOFFS
    assert sighting.evidence["invented_accepted"] == 0


@pytest.mark.parametrize(
    "stale",
    [lambda *_: refused("expired", status=500), lambda _pair, _sent, line: answered(line)],
    ids=["refused", "computed again"],
)
def test_a_healthy_pair(stale):
    outcome = play(SCENARIO, Pair(stale, size=Size(rounds=2)).bench)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.opportunities == 2 * HANDOFFS
    assert outcome.sensitivity == 1


def test_a_router_that_gives_no_hand_off():
    for script in (copying, lambda _: refused("unknown field kv_transfer_params")):
        outcome = play(SCENARIO, ScriptedBench(script))
        assert outcome.verdict is Verdict.NOT_TESTED


def test_fresh_ones_that_show_nothing_are_inconclusive():
    pair = Pair(lambda *_: refused())
    pair.bench.script = lambda sent: (
        deaf(sent)
        if "do_remote_prefill" in sent.ask.extra_body.get("kv_transfer_params", {})
        and sent.ask.max_tokens != 1
        else pair(sent)
    )
    assert play(SCENARIO, pair.bench).verdict is Verdict.INCONCLUSIVE


def test_hand_offs_that_are_refused_later_take_nothing_back():
    """What the first round saw is an exposure, though the second is given no hand-off."""
    pair = Pair(lambda _pair, _sent, _line: answered("and so on and on"), size=Size(rounds=2))
    first_round = 1 + HANDOFFS

    def until_then(sent):
        fields = sent.ask.extra_body.get("kv_transfer_params", {})
        if fields.get("do_remote_decode") and len(pair.kept) == first_round:
            return refused("no more of that")
        return pair(sent)

    pair.bench.script = until_then
    outcome = play(SCENARIO, pair.bench)
    assert outcome.verdict is Verdict.EXPOSED
    assert outcome.sightings[0].evidence["stale_other"] == HANDOFFS
    assert "1 times no hand-off was given" in outcome.why


def test_a_churn_that_was_refused_has_overwritten_nothing():
    pair = Pair(lambda *_: refused("expired", status=500))
    pair.bench.script = lambda sent: refused(status=503) if sent.ask.mark == "filler" else pair(sent)
    outcome = play(SCENARIO, pair.bench)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.notes[0].startswith("35 s after a hand-off, 0 of 40 prompts of others were computed")


@pytest.mark.parametrize(("lease_s", "refusals"), [(None, 0), (120.0, HANDOFFS)])
def test_it_waits_for_the_lease_that_the_profile_names(lease_s, refusals):
    """A pair that keeps hand-offs for two minutes: after the usual wait they are still honest."""
    pair = Pair(lambda *_: refused("expired", status=500), known=plain_known(lease_s=lease_s))
    pair.lease_s = 120.0
    outcome = play(SCENARIO, pair.bench)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert f": {refusals} were refused" in outcome.why
    assert wait_s(pair.bench.known) == (lease_s or 30) + 5


def test_legs_go_to_their_nodes():
    pair = Pair(lambda *_: refused(), known=plain_known(nodes=("http://p", "http://d")))
    play(SCENARIO, pair.bench)
    nodes = {sent.ask.mark: sent.ask.node for sent in pair.bench.asked}
    assert nodes == {"handoff": "http://p", "control": "http://d", "filler": "http://p", "probe": "http://d"}
