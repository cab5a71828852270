"""Counting requests that quote their own marker."""

from tests.check.scenarios.quote_server import copying
from tests.check.scripted_bench import ScriptedBench, answered, plain_known, refused, silent
from tests.check.virtual import run

from kvfence.check.asks import Endpoint
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenarios.quoting import (
    AT_ONCE,
    Tally,
    calm,
    quote_of,
    quote_serially,
    quote_wave,
)
from kvfence.report import Verdict


def test_ends_are_told_apart():
    bench = ScriptedBench(copying)
    marker, tally = bench.mint("a"), Tally()
    ends = (
        answered(marker.text),
        answered("no"),
        refused(),
        silent(),
        Reply(status=200, failure=Failure.HUNG_UP),
    )
    for reply in ends:
        tally.count(reply, marker)
    assert (tally.asked, tally.answered, tally.shown, tally.lost) == (5, 2, 1, 1)
    assert (tally.failed, tally.hung_up, tally.shown_share) == (2, 1, 0.5)


def test_prompts_go_where_copying_is_easiest():
    bench = ScriptedBench(copying)
    assert quote_of(bench, bench.mint("a"), mark="probe").endpoint is Endpoint.COMPLETIONS
    chat = ScriptedBench(copying, known=plain_known(has=frozenset()))
    assert quote_of(chat, chat.mint("a"), mark="probe").endpoint is Endpoint.CHAT


def test_the_sensitivity_is_the_worse_of_control_and_load():
    bench = ScriptedBench(copying)
    control, tally = Tally(answered=4, shown=4), Tally(answered=10, shown=5)
    assert calm(bench, tally, control).sensitivity == 0.5
    assert calm(bench, tally, Tally(answered=4, shown=1)).sensitivity == 0.25
    assert calm(bench, Tally(answered=10, shown=10), control).verdict is Verdict.NO_EVIDENCE


def test_nobody_quotes_under_load():
    control = Tally(answered=4, shown=4)
    assert calm(ScriptedBench(copying), Tally(answered=9), control).verdict is Verdict.INCONCLUSIVE


def test_co_residence_is_what_is_known_of_it():
    bench = ScriptedBench(copying, known=plain_known(co_residence=0.5))
    assert calm(bench, Tally(answered=1, shown=1), Tally(answered=1, shown=1)).co_residence == 0.5


def test_a_wave_is_at_once_and_a_control_is_not():
    bench = ScriptedBench(copying)
    run(quote_serially(bench))
    assert bench.most_at_once == 1
    tally = Tally()
    run(quote_wave(bench, tally))
    assert bench.most_at_once == AT_ONCE
    assert tally.answered == tally.shown == AT_ONCE
    assert tally.prompt_tokens > 0
