"""Act 1: the published figures come out of a real ledger, and other sizes do not pretend to be published."""

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.replay import numbers
from kvfence.replay.numbers import PAGES_MAX, Figure, Sizes, account, figures, largest_prompt_tokens


def test_the_incidents_figures_are_exact():
    accounting = account(Sizes())
    assert accounting.largest_decode_tokens == 1_048_576
    assert accounting.largest_prefill_tokens == 681_280
    assert accounting.band_tokens == 367_296
    assert round(accounting.pool_percent, 2) == 64.97
    assert round(accounting.fixed_factor, 2) == 1.95
    assert round(accounting.fixed_pool_tokens / 1e6, 2) == 2.04
    assert accounting.fixed_band_tokens == 0
    assert (accounting.pool_pages, accounting.context_pages) == (42_580, 65_536)
    made = figures(accounting)
    assert [figure.published for figure in made][:6].count(None) == 0
    assert all(figure.agrees for figure in made)


def test_other_sizes_are_computed_and_stand_alone():
    made = figures(account(Sizes(context_tokens=64, pool_tokens=40, page_tokens=16)))
    # Two whole pages of 16 in a pool of 40.
    assert made[1].computed == "32"
    assert made[3].computed == "32"
    assert {figure.published for figure in made} == {None}


def test_a_pool_as_large_as_the_context_has_no_band():
    assert account(Sizes(context_tokens=64, pool_tokens=640, page_tokens=16)).band_tokens == 0


def test_the_last_page_counts_where_a_context_ends_in_it():
    assert largest_prompt_tokens(4, Sizes(context_tokens=61, pool_tokens=64, page_tokens=16)) == 61
    assert largest_prompt_tokens(3, Sizes(context_tokens=61, pool_tokens=64, page_tokens=16)) == 48


def test_a_figure_that_differs_is_seen():
    assert not Figure("x", "64.98 %", "64.97 %").agrees
    assert Figure("x", "64.97 %", "64.97 %").agrees


def test_an_accounting_that_is_wrong_would_be_seen(monkeypatch):
    monkeypatch.setattr(numbers, "pages_for", lambda tokens, page_tokens: tokens // page_tokens + 1)
    # Each prompt is asked one page too many: the ledger of exactly the context's pages refuses.
    with pytest.raises(Exception, match="hold"):
        largest_prompt_tokens(4, Sizes(context_tokens=64, pool_tokens=64, page_tokens=16))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"context_tokens": 0}, "--context-tokens"),
        ({"pool_tokens": 1 << 40}, "--pool-tokens"),
        ({"page_tokens": 0}, "--page-tokens"),
        ({"pool_tokens": 8}, "no whole page"),
        ({"page_tokens": 1, "pool_tokens": PAGES_MAX + 1}, "raise --page-tokens"),
    ],
)
def test_sizes_of_which_there_is_nothing_to_say_are_refused(sizes, said):
    with pytest.raises(OperatorError, match=said):
        Sizes(**sizes)
