"""boundary: the incident's band is found, with and without recall; and each of the others is called by its name."""

import pytest
from tests.check.scenarios.long_server import PUBLIC_1M, LongServer
from tests.check.scripted_bench import EVERYTHING, ScriptedBench, count_words, plain_known, play, refused

from kvfence.check.known import Need, TokenCounter
from kvfence.check.scenario import Size
from kvfence.check.scenarios.boundary import SCENARIO
from kvfence.check.stops import BudgetSpent
from kvfence.report import Severity, Verdict

M = 1_048_576


def boundary(server, *, size=None, **known):
    bench = ScriptedBench(server, known=plain_known(context_tokens=server.context, **known), size=size)
    return play(SCENARIO, bench), bench


def only(outcome):
    (sighting,) = outcome.sightings
    return sighting


class TestTheIncident:
    def test_its_band_is_found_by_time_and_recall(self):
        outcome, bench = boundary(LongServer(pool=2_048, fate="place"))
        assert outcome.verdict is Verdict.UNREAD, outcome.why
        sighting = only(outcome)
        assert (sighting.code, sighting.severity) == ("KVF203", Severity.CRITICAL)
        assert sighting.evidence["agreeing"] == 3
        assert sighting.evidence["recalled"] == "no, no, no, no, no"
        assert sighting.evidence["usage_share"] == pytest.approx(1.0, abs=0.02)
        assert sum(sent.ask.mark == "probe" for sent in bench.asked) == 3

    def test_the_clock_is_told_so_that_a_report_can_draw_it(self):
        _, bench = boundary(LongServer(pool=2_048, fate="place"))
        assert list(bench.figures) == ["clock.a", "clock.b", "clock.c", "clock.per_token"]
        assert bench.figures["clock.per_token"] > 0

    def test_it_is_confirmed_twice_after_a_control(self):
        _, bench = boundary(LongServer(pool=2_048, fate="place"))
        marks = [sent.ask.mark for sent in bench.asked]
        assert marks[-4:] == ["probe", "control", "probe", "probe"]
        assert [sent.ask.is_heavy for sent in bench.asked[-3:]] == [False, True, True]

    @pytest.mark.parametrize("more", [0, 1, 2])
    def test_a_budget_that_is_spent_before_it_is_confirmed_leaves_it_suspect(self, more):
        server, probed = LongServer(pool=2_048, fate="place"), []

        def script(sent):
            if len(probed) > more:
                raise BudgetSpent("no more")
            if probed or sent.ask.mark == "probe":
                probed.append(sent)
            return server(sent)

        with pytest.raises(BudgetSpent) as spent:
            play(SCENARIO, ScriptedBench(script, known=plain_known(context_tokens=server.context)))
        outcome = spent.value.so_far
        assert outcome.verdict is Verdict.SUSPECT
        assert (only(outcome).code, only(outcome).severity) == ("KVF203", Severity.MEDIUM)
        assert only(outcome).what.endswith("not confirmed: no more")

    def test_a_budget_that_is_spent_before_anything_was_seen_leaves_nothing(self):
        server = LongServer()

        def script(sent):
            if sent.ask.mark == "probe":
                raise BudgetSpent("no more")
            return server(sent)

        with pytest.raises(BudgetSpent) as spent:
            play(SCENARIO, ScriptedBench(script, known=plain_known(context_tokens=server.context)))
        assert spent.value.so_far is None

    def test_a_model_that_follows_no_instruction_echoes(self):
        outcome, _ = boundary(LongServer(pool=2_048, fate="place", recalls=False))
        assert outcome.verdict is Verdict.UNREAD
        assert only(outcome).evidence["recall_form"] == "the echo of its end"

    def test_without_any_recall_time_alone_tells_and_says_so(self):
        outcome, _ = boundary(LongServer(pool=2_048, fate="place", recalls=False, echoes=False))
        assert outcome.verdict is Verdict.UNREAD
        assert only(outcome).evidence["recalled"] is None
        assert "could not be tested" in only(outcome).rival

    def test_a_chat_server_without_usage(self):
        has = EVERYTHING - {Need.COMPLETIONS, Need.USAGE}
        outcome, _ = boundary(LongServer(pool=2_048, fate="place", has_usage=False), has=has)
        assert outcome.verdict is Verdict.UNREAD

    def test_usage_of_one_token_says_it_itself(self):
        outcome, _ = boundary(LongServer(pool=2_048, fate="place_counted"))
        assert outcome.verdict is Verdict.UNREAD
        assert "usage itself" in outcome.why

    def test_the_public_clock_at_a_million(self):
        server = LongServer(clock=PUBLIC_1M, context=M, pool=681_280, fate="place")
        outcome, bench = boundary(server)
        assert outcome.verdict is Verdict.UNREAD
        assert only(outcome).evidence["sent_tokens"] == M - 512
        assert only(outcome).evidence["floor_s"] > 90
        clock = [sent for sent in bench.asked if sent.ask.mark == "clock"]
        assert sorted({sent.ask.prompt_tokens for sent in clock})[-1] == pytest.approx(M // 16, rel=0.01)

    def test_a_server_of_two_nodes_one_of_them_small(self):
        class Every(LongServer):
            def _place(self, sent, tokens):
                is_small = sum(1 for _ in range(self.seen)) % 2 == 0
                return super()._place(sent, tokens) if is_small else self._forget_nothing(sent, tokens)

        outcome, _ = boundary(Every(pool=2_048, fate="place"), size=Size(rounds=2))
        assert outcome.verdict in {Verdict.UNREAD, Verdict.INCONCLUSIVE}
        assert outcome.verdict is not Verdict.NO_EVIDENCE


class TestTheOthers:
    def test_healthy(self):
        outcome, _ = boundary(LongServer())
        assert outcome.verdict is Verdict.NO_EVIDENCE, outcome.why
        assert (outcome.opportunities, outcome.co_residence, outcome.sensitivity) == (1, 1.0, 1.0)
        assert "plausible" in outcome.why
        assert not outcome.sightings

    @pytest.mark.parametrize("weak", [{"recalls": False}, {"recalls": False, "echoes": False}])
    def test_healthy_with_a_weak_model(self, weak):
        assert boundary(LongServer(**weak))[0].verdict is Verdict.NO_EVIDENCE

    def test_healthy_by_the_same_clock(self):
        assert boundary(LongServer(clock=PUBLIC_1M, context=M // 8))[0].verdict is Verdict.NO_EVIDENCE

    def test_refusing(self):
        outcome, _ = boundary(LongServer(pool=2_048))
        assert outcome.verdict is Verdict.EXPOSED
        assert only(outcome).code == "KVF209"
        assert only(outcome).evidence["limit_in_message"] == 2_048

    def test_a_refusal_below_the_clocks_longest_prompt(self):
        outcome, _ = boundary(LongServer(pool=200))
        assert outcome.verdict is Verdict.EXPOSED

    @pytest.mark.parametrize("fate", ["tail", "hidden_tail"])
    def test_truncating(self, fate):
        outcome, _ = boundary(LongServer(pool=2_048, fate=fate))
        assert outcome.verdict is Verdict.TRUNCATED, outcome.why
        assert only(outcome).code == "KVF204"

    def test_hanging(self):
        outcome, bench = boundary(LongServer(pool=2_048, fate="hang"))
        assert outcome.verdict is Verdict.HANG
        assert only(outcome).code == "KVF205"
        assert bench.asked[-1].ask.mark == "probe", "nothing is sent after it"

    def test_a_model_that_forgets_the_head_is_not_cut(self):
        outcome, _ = boundary(LongServer(pool=2_048, fate="forget_head"))
        assert outcome.verdict is Verdict.NO_EVIDENCE
        assert "forgotten" in outcome.notes[0]

    def test_a_prompt_that_is_forgotten_in_its_time_says_nothing(self):
        outcome, _ = boundary(LongServer(pool=2_048, fate="forget_all"))
        assert outcome.verdict is Verdict.INCONCLUSIVE

    def test_once_is_not_twice(self):
        outcome, _ = boundary(LongServer(pool=2_048, fate="once"))
        assert outcome.verdict is Verdict.INCONCLUSIVE
        assert "did not come again" in outcome.why

    def test_a_gateway_that_refuses_bytes(self):
        outcome, _ = boundary(LongServer(pool=2_048, fate="too_large"))
        assert outcome.verdict is Verdict.INCONCLUSIVE
        assert "413" in outcome.why

    def test_a_clock_that_is_too_fast_and_a_model_that_recalls_nothing(self):
        server = LongServer(clock=(0.02, 1e-7, 0), pool=2_048, fate="place", recalls=False, echoes=False)
        assert boundary(server)[0].verdict is Verdict.INCONCLUSIVE

    def test_a_server_that_became_ten_times_faster_in_between(self):
        class Faster(LongServer):
            def __call__(self, sent):
                if sent.ask.mark == "probe":
                    self.speed = 10.0
                return super().__call__(sent)

        outcome, _ = boundary(Faster(recalls=False, echoes=False))
        assert outcome.verdict is not Verdict.UNREAD

    def test_busy(self):
        outcome, _ = boundary_of(lambda sent: refused("later", status=429))
        assert outcome.verdict is Verdict.INCONCLUSIVE


def boundary_of(script, **known):
    bench = ScriptedBench(script, known=plain_known(**known))
    return play(SCENARIO, bench), bench


class TestTheContext:
    def test_it_is_asked_for_by_an_enormous_answer(self):
        server = LongServer(context=8_192)

        def script(sent):
            if sent.ask.mark == "context":
                return refused("max_tokens 1000000000 is over the context length of 8192 tokens")
            return server(sent)

        outcome, bench = boundary_of(script, context_tokens=None)
        assert outcome.verdict is Verdict.NO_EVIDENCE
        assert bench.asked[0].ask.extra_body == {"max_tokens": 1_000_000_000}
        assert max(sent.tokens for sent in bench.asked) == pytest.approx(8_192 - 512, abs=40)

    def test_nobody_tells(self):
        outcome, bench = boundary_of(LongServer(), context_tokens=None)
        assert outcome.verdict is Verdict.INCONCLUSIVE
        assert len(bench.asked) == 1

    def test_too_small_for_a_clock(self):
        assert boundary_of(LongServer(), context_tokens=512)[0].verdict is Verdict.INCONCLUSIVE


def test_a_counter_that_errs_is_corrected_by_usage():
    counter = TokenCounter(count=lambda text: round(1.2 * count_words(text)), how="tokenize", error=0.2)
    outcome, bench = boundary(LongServer(), counter=counter)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert bench.asked[-1].tokens == pytest.approx(4_096 - 512 - 12, abs=20)


def test_usage_that_was_found_untrue_corrects_nothing():
    counter = TokenCounter(count=count_words, how="bytes", error=0.2)
    outcome, bench = boundary(LongServer(), counter=counter)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    longest = max(sent.tokens for sent in bench.asked)
    assert longest == pytest.approx(0.8 * 4_096 - 512, abs=40)


def test_tokens_that_cannot_be_counted_are_no_probe():
    counter = TokenCounter(count=count_words, how="bytes", error=0.5)
    outcome, bench = boundary(LongServer(), counter=counter)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "within 50% only" in outcome.why
    assert max(sent.tokens for sent in bench.asked) <= 4_096 // 4


class TestTheBrim:
    SIZE = Size(rounds=2)

    def test_a_band_of_a_few_tokens_is_found_there(self):
        outcome, bench = boundary(LongServer(context=65_536, pool=65_532, fate="tail"), size=self.SIZE)
        assert outcome.verdict is Verdict.TRUNCATED, outcome.why
        assert only(outcome).evidence["sent_tokens"] == 65_535
        assert bench.asked[-1].ask.max_tokens == 1

    def test_a_healthy_server_and_one_that_keeps_a_few_tokens_back(self):
        for server in (LongServer(), LongServer(pool=4_090)):
            outcome, _ = boundary(server, size=self.SIZE)
            assert outcome.verdict is Verdict.NO_EVIDENCE
            assert not outcome.sightings
            assert "4,095 tokens with 1 to come" in outcome.notes[-1]


def test_a_weak_model_is_asked_again():
    class Sleepy(LongServer):
        def _forget_nothing(self, sent, tokens):
            self.fate = "awake"
            return self._forget_all(sent, tokens)

        def _awake(self, sent, tokens):
            return self._answer(sent.text, sent, tokens, tokens)

    outcome, bench = boundary(Sleepy(pool=2_048, fate="forget_nothing"))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert sum(sent.ask.mark == "probe" for sent in bench.asked) == 2


class TestTheEdge:
    SIZE = Size(locates_edge=True, resolution_tokens=64)

    @pytest.mark.parametrize("fate", ["place", "mute", "tail"])
    def test_it_is_found_with_two_prompts_read(self, fate):
        server = LongServer(pool=2_048, fate=fate)
        outcome, _ = boundary(server, size=self.SIZE)
        (line,) = [note for note in outcome.notes if "are read, those of" in note]
        read, unread = (int(word.replace(",", "")) for word in line.split() if word[0].isdigit())
        assert read < 2_048 - 8 <= unread
        assert unread - read <= 64

    def test_a_limit_that_the_refusal_names_is_tested(self):
        outcome, _ = boundary(LongServer(pool=2_048), size=self.SIZE)
        assert any("names a limit of 2,048" in note for note in outcome.notes)
        assert (
            sum("max_tokens" in note for note in outcome.notes) == 7
        )  # six around the edge, and the refused one without a bound

    def test_a_healthy_server_is_asked_at_its_context(self):
        outcome, bench = boundary(LongServer(), size=self.SIZE)
        assert outcome.verdict is Verdict.NO_EVIDENCE
        assert not outcome.sightings
        assert bench.asked[-1].ask.max_tokens is None

    def test_an_answer_over_the_context_is_a_finding(self):
        server = LongServer(fate="forget_nothing")
        outcome, _ = boundary(server, size=self.SIZE)
        assert {sighting.code for sighting in outcome.sightings} == {"KVF210"}

    def test_a_hang_ends_it(self):
        outcome, bench = boundary(LongServer(pool=2_048, fate="hang"), size=self.SIZE)
        assert outcome.verdict is Verdict.HANG
        assert sum(sent.ask.mark == "probe" for sent in bench.asked) == 1
