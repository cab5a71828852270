"""The longest prompt of all is as long as the server's own count allows, and lies in bands of a few tokens."""

import pytest
from tests.check.scenarios.long_server import TEMPLATE_TOKENS, LongServer
from tests.check.scripted_bench import ScriptedBench, count_words, plain_known, play, refused

from kvfence.check.known import TokenCounter
from kvfence.check.scenario import Size
from kvfence.check.scenarios.boundary import SCENARIO
from kvfence.check.scenarios.boundary_brim import SPARE_TOKENS
from kvfence.check.scenarios.boundary_plan import BRIM_REFUSALS
from kvfence.report import Verdict

CONTEXT = 16_384
OFF_BY = 11


class Strict(LongServer):
    """Refuses what is over the context, with its own count or without; what is over the pool has its fate."""

    def __init__(self, *, says, band, fate="place", keeps_back=0):
        super().__init__(context=CONTEXT, pool=CONTEXT - band, fate=fate)
        self.says, self.keeps_back = says, keeps_back
        self.refusals = 0

    def __call__(self, sent):
        tokens = sent.tokens + TEMPLATE_TOKENS
        if tokens + (sent.ask.max_tokens or 1) > self.context - self.keeps_back:
            self.refusals += 1
            limit = f"the maximum context length is {self.context} tokens"
            return refused(f"{limit}, your prompt has {tokens}" if self.says == "count" else limit)
        return super().__call__(sent)


def off(text):
    """A count of long texts that is too low."""
    words = count_words(text)
    return words - OFF_BY if words > 2_000 else words


def at_the_brim(**server):
    server = Strict(**server)
    counter = TokenCounter(count=off, how="usage", error=0.001)
    bench = ScriptedBench(
        server, known=plain_known(context_tokens=CONTEXT, counter=counter), size=Size(rounds=2)
    )
    return play(SCENARIO, bench), bench, server


@pytest.mark.parametrize("band", [1, 4])
def test_a_band_of_a_few_tokens_is_found_where_a_refusal_names_the_count(band: int):
    outcome, bench, server = at_the_brim(says="count", band=band)
    assert outcome.verdict is Verdict.UNREAD, outcome.why
    assert bench.asked[-1].tokens + TEMPLATE_TOKENS == CONTEXT - 1
    assert server.refusals == 1


def test_without_a_count_one_of_a_few_dozen_is_found():
    outcome, _, server = at_the_brim(says="nothing", band=24)
    assert outcome.verdict is Verdict.UNREAD, outcome.why
    assert 1 < server.refusals <= BRIM_REFUSALS


@pytest.mark.parametrize("says", ["count", "nothing"])
def test_a_healthy_server_has_no_band(says: str):
    outcome, _, _ = at_the_brim(says=says, band=0)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert "by the server's count: read" in outcome.notes[-1]


def test_a_server_that_keeps_much_back_is_asked_a_few_times_and_no_more():
    outcome, _, server = at_the_brim(says="nothing", band=0, keeps_back=SPARE_TOKENS + 64)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert "refused" in outcome.notes[-1]
    assert server.refusals <= BRIM_REFUSALS + 1
