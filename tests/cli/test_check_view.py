"""The plan as it is shown before a run."""

import io

from rich.console import Console
from tests.check.test_plan import scenario

from kvfence.check.budget import Limits, Price
from kvfence.check.plan import Chosen, Left, Plan
from kvfence.check.scenario import Hazard, Size
from kvfence.cli.check_view import budget_line, print_plan
from kvfence.report import Cost

PLAN = Plan(
    chosen=(
        Chosen(
            scenario("one-word"),
            Size(),
            Cost(requests=8, prompt_tokens=240, completion_tokens=64, seconds=12),
        ),
        Chosen(
            scenario("boundary", hazard=Hazard.MAY_STOP_SERVER),
            Size(),
            Cost(requests=14, prompt_tokens=1_412_000, completion_tokens=112, seconds=1_500),
        ),
    ),
    left=(Left(scenario("abort-refill"), "it is may-harm-others"),),
)
SHOWN = """\
scenario  hazard           requests  prompt tokens  completion tokens  minutes
one-word  ordinary                8            240                 64      0.2
boundary  may-stop-server        14      1,412,000                112     25.0
at most                          22      1,412,240                176     25.2
not tested: abort-refill: it is may-harm-others
churn: where the free list hands out first what came back last, an opportunity costs one request (64,200 \
tokens in the mean); where free pages wait in line, it costs the whole pool: all of this plan writes 1,412,416 \
tokens, so the pages of larger pools do not come round (kvfence audit reads how large they are)
budget: 400 requests, 120 seconds
"""


def shown(limits: Limits, price: Price | None = None) -> str:
    out = io.StringIO()
    print_plan(Console(file=out, width=100, color_system=None), PLAN, limits, price)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines() if line.strip())


def test_a_plan_shows_costs_what_is_left_and_the_budget():
    assert shown(Limits(requests=400, seconds=120.0)) == SHOWN


def test_money_is_shown_where_there_is_a_price():
    line = budget_line(PLAN, Limits(money=5.0), Price(prompt=1.0, completion=2.0))
    assert line == "budget: 5 of money; the plan costs at most 1.41"


def test_no_limit_is_said():
    assert budget_line(PLAN, Limits(), None) == "budget: no limit"
