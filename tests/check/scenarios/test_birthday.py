"""birthday: short keys collide and show; long ones do not, and the report says how short is short."""

from hashlib import blake2b

import pytest
from tests.check.scripted_bench import ScriptedBench, answered, play, refused

from kvfence.check.scenario import Size
from kvfence.check.scenarios.birthday import PROMPTS, SCENARIO, bits_found
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


class Cache:
    """Answers out of what stands under a key of so many bits; `tells` says its hits."""

    def __init__(self, bits, *, reads=True):
        self.bits, self.reads, self.pages = bits, reads, {}

    def __call__(self, sent):
        own = sent.own[0].text
        key = int.from_bytes(blake2b(own.encode()).digest()) % (1 << self.bits)
        there = self.pages.setdefault(key, own)
        said = there if self.reads else own
        return answered(f"{said}\n{said}", cached_tokens=16 if there is own else 96)


def birthday(script, size=None):
    bench = ScriptedBench(script, size=size)
    return play(SCENARIO, bench), bench


def test_a_short_key_brings_anothers_marker():
    with pytest.raises(ForeignMarkerSeen):
        birthday(Cache(8))


def test_a_short_key_shows_in_cached_tokens():
    outcome, _ = birthday(Cache(9, reads=False))
    assert outcome.verdict is Verdict.EXPOSED
    assert outcome.sightings[0].code == "KVF213"


def test_a_long_key():
    outcome, bench = birthday(Cache(200), Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert (outcome.opportunities, outcome.sensitivity) == (2 * PROMPTS, 1.0)
    assert outcome.smallest_effect == "keys of up to 13 bits"
    assert {sent.tenant for sent in bench.asked} == {"a", "b"}


def test_a_template_that_is_always_cached_is_no_collision():
    outcome, _ = birthday(lambda sent: answered(sent.own[0].text, cached_tokens=96))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert not outcome.sightings


def test_without_answers():
    assert birthday(lambda _sent: refused("later", status=429))[0].verdict is Verdict.INCONCLUSIVE


def test_how_long_a_key_is_found_out():
    assert bits_found(300) == pytest.approx(13.9, abs=0.1)
    assert bits_found(2) < 0
