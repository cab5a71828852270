"""What ends a scenario: the gravest of several comes out."""

from kvfence.check.asks import Ask
from kvfence.check.markers import Hit, Marker
from kvfence.check.reply import Reply
from kvfence.check.stops import BudgetSpent, ForeignMarkerSeen, LifelineFailed, first_stop

SEEN = ForeignMarkerSeen(
    request=7,
    tenant="anna",
    ask=Ask(prompt="x"),
    reply=Reply(status=200),
    hits=(Hit(Marker("words", "berta", 64), "content", 50.0, 1.0),),
)


def test_a_foreign_marker_comes_before_everything_else():
    group = BaseExceptionGroup(
        "", [BudgetSpent("a"), ExceptionGroup("", [SEEN]), LifelineFailed("b", request=1)]
    )
    assert first_stop(group) is SEEN


def test_what_else_stops_comes_out_too():
    spent = BudgetSpent("a")
    assert first_stop(BaseExceptionGroup("", [ValueError(), spent])) is spent


def test_a_group_without_a_stop_has_none():
    assert first_stop(BaseExceptionGroup("", [ValueError()])) is None


def test_a_foreign_marker_says_whose_it_is_and_quotes_nothing():
    assert str(SEEN) == "request 7 of anna brought back a marker of berta"
