"""cross-tenant-reuse: what is cached for whom, in counts and in times."""

import random

import pytest
from tests.check.scripted_bench import ScriptedBench, answered, plain_known, play, refused

from kvfence.check.known import Need
from kvfence.check.scenario import Size
from kvfence.check.scenarios.cross_tenant_reuse import BLOCKS, SCENARIO
from kvfence.report import Severity, Verdict

COLD_S, WARM_S = 0.060, 0.020


class Cache:
    """A prefix cache. `domain` says whose pages a tenant finds, `count` what the answer says of a hit."""

    def __init__(
        self,
        *,
        domain=lambda tenant: tenant,
        count=lambda hit, tokens: tokens - 1 if hit else 0,
        noise_s=0.001,
        gain_s=COLD_S - WARM_S,
        forgets=0.0,
    ):
        self.domain, self.count, self.noise_s, self.gain_s, self.forgets = (
            domain,
            count,
            noise_s,
            gain_s,
            forgets,
        )
        self.seen = set()
        self.random = random.Random(11)

    def __call__(self, sent):
        key = (self.domain(sent.tenant), sent.text)
        hit = key in self.seen and self.random.random() >= self.forgets
        self.seen.add(key)
        ttft_s = COLD_S - (self.gain_s if hit else 0.0) + self.random.expovariate(1 / self.noise_s)
        return answered(
            "x", prompt_tokens=sent.tokens, cached_tokens=self.count(hit, sent.tokens), ttft_s=ttft_s
        )

    def play(self, *, counts=True, **options):
        has = frozenset(Need) if counts else frozenset(Need) - {Need.CACHED_TOKENS}
        return play(SCENARIO, ScriptedBench(self, known=plain_known(has=has), **options))


def everybody(_tenant):
    return "all"


def test_counts_of_a_shared_cache():
    outcome = Cache(domain=everybody).play()
    assert outcome.verdict is Verdict.EXPOSED
    (sighting,) = outcome.sightings
    assert (sighting.code, sighting.severity) == ("KVF207", Severity.HIGH)
    assert sighting.evidence["probe_hits"] == sighting.evidence["probes"] == BLOCKS
    assert sighting.evidence["cold_hits"] == 0
    assert sighting.evidence["own_hits"] == BLOCKS


@pytest.mark.parametrize(
    "options",
    [{"counts": False}, {"counts": True}],
    ids=["no counts", "counts that say 0"],
)
def test_a_count_of_nothing_proves_nothing_and_times_tell(options):
    outcome = Cache(domain=everybody, count=lambda _hit, _tokens: 0).play(**options)
    assert outcome.verdict is Verdict.EXPOSED
    (sighting,) = outcome.sightings
    assert (sighting.code, sighting.severity) == ("KVF208", Severity.MEDIUM)
    assert 30 < sighting.evidence["median_gain_ms"] < 50


def test_counts_above_the_prompt_are_rejected():
    outcome = Cache(count=lambda _hit, tokens: 10 * tokens).play()
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert "100 cached counts were above their prompt's own, and were not used" in outcome.notes


def test_a_healthy_server():
    outcome = Cache().play(size=Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.sightings == ()
    assert outcome.sensitivity == 1
    assert outcome.p_value > 0.01
    assert outcome.smallest_effect.startswith("a shift of")
    assert any(note.startswith("cached counts: 0 of 40 prompts") for note in outcome.notes)


def test_a_templates_few_tokens_are_no_hit():
    outcome = Cache(count=lambda hit, tokens: tokens - 1 if hit else 16).play()
    assert outcome.verdict is Verdict.NO_EVIDENCE


def test_a_gain_below_the_minimum_is_no_finding():
    outcome = Cache(domain=everybody, gain_s=0.003, noise_s=0.0002, count=lambda _hit, _tokens: 0).play()
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "does not show in time" in outcome.why


def test_without_a_cache_nothing_can_be_seen():
    outcome = Cache(forgets=1.0).play()
    assert outcome.verdict is Verdict.INCONCLUSIVE


def test_the_order_is_a_coins():
    bench = ScriptedBench(Cache())
    play(SCENARIO, bench)
    first = [bench.asked[index + 1].ask.mark for index in range(0, len(bench.asked), 5)]
    assert 4 <= first.count("probe") <= BLOCKS - 4
    assert bench.most_at_once == 1


def test_a_server_that_refuses_is_inconclusive():
    outcome = play(SCENARIO, ScriptedBench(lambda sent: refused()))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "0 of 20 blocks" in outcome.why


def test_false_alarms_of_timing():
    """Healthy servers with much noise: at an alpha of one in a thousand none of these is exposed."""
    for seed in range(5):
        cache = Cache(noise_s=0.01)
        cache.random = random.Random(seed)
        assert cache.play(counts=False, seed=seed).verdict is not Verdict.EXPOSED
