"""full-pool: re-use while the pool fills, seen by cached counts."""

import pytest
from tests.check.scenarios.quote_server import deaf, last_line
from tests.check.scripted_bench import ScriptedBench, answered, plain_known, play

from kvfence.check.known import Need
from kvfence.check.scenarios.full_pool import CONTEXTS_WRITTEN, FILLERS, SCENARIO, waves_of
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


class Pool:
    """A server that keeps prompts until so many tokens were written after them; `say` answers an evicted one."""

    def __init__(self, tokens, say=None, **options):
        self.tokens, self.say = tokens, say
        self.written, self.used_at, self.lines = 0, {}, []
        self.bench = ScriptedBench(self, **options)

    def __call__(self, sent):
        before = self.used_at.get(sent.text)
        is_kept = before is not None and self.written - before < self.tokens
        self.written += 0 if is_kept else sent.tokens
        self.used_at[sent.text] = self.written
        self.lines.append(last_line(sent))
        text = last_line(sent) if self.say is None or before is None or is_kept else self.say(self)
        return answered(text, prompt_tokens=sent.tokens, cached_tokens=sent.tokens - 1 if is_kept else 0)


def test_an_unpinned_match_reads_what_came_after_it():
    with pytest.raises(ForeignMarkerSeen):
        play(SCENARIO, Pool(4_500, lambda pool: pool.lines[-2]).bench)


def test_garbage_after_eviction_is_suspect():
    outcome = play(SCENARIO, Pool(4_500, lambda _: "uh uh uh").bench)
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.sightings[0].code == "KVF206"


def test_a_healthy_server():
    outcome = play(SCENARIO, Pool(4_500).bench)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.sensitivity == 1
    assert outcome.notes[0].startswith("re-used prompts had been evicted")


def test_a_pool_that_never_fills_was_not_tried():
    outcome = play(SCENARIO, Pool(10**9).bench)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "never full" in outcome.why


def test_without_cached_counts_it_says_that_it_could_not_see():
    known = plain_known(has=frozenset(Need) - {Need.CACHED_TOKENS})
    outcome = play(SCENARIO, Pool(4_500, known=known).bench)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.notes[0] == "whether the pool was full could not be seen"


def test_a_deaf_model_shows_nothing():
    known = plain_known(has=frozenset(Need) - {Need.CACHED_TOKENS})
    assert play(SCENARIO, ScriptedBench(deaf, known=known)).verdict is Verdict.INCONCLUSIVE


def test_it_writes_twice_the_context_up_to_a_bound():
    bench = Pool(4_500).bench
    play(SCENARIO, bench)
    fillers = [sent for sent in bench.asked if sent.ask.mark == "filler"]
    assert sum(sent.tokens for sent in fillers) >= CONTEXTS_WRITTEN * 4_096 * 0.9
    many = waves_of(plain_known(context_tokens=1_048_576), bench.size)
    assert many * FILLERS * 24 * 17 < 70_000
