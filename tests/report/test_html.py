"""The HTML report: whole, self-contained, forbidden to load anything, with everything of a run escaped."""

import base64
import hashlib
import re

import msgspec
import pytest

from kvfence.report import (
    CapabilityLearned,
    Cost,
    FindingMade,
    NodeRead,
    Noted,
    RunEnded,
    ScenarioStarted,
)
from kvfence.report.digest import Digest
from kvfence.report.html import html_report, policy
from kvfence.report.html_axes import Linear, Logarithmic, curve
from kvfence.report.html_clock import Fit, fit_of, ttft_plots
from kvfence.report.html_markup import element, link, table, text
from kvfence.report.html_reuse import reuse_plots, reuse_table
from tests.report.html_checker import Checker
from tests.report.samples import (
    AUDIT,
    CLOCK,
    HOSTILE,
    INTERRUPTED,
    LEAKING,
    QUIET,
    RUNS,
    TIMED,
    answered,
    started,
    unread,
)


def checked(report: str) -> Checker:
    checker = Checker()
    checker.feed(report)
    return checker


def words_of(report: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", report.split("</style>")[-1]))


@pytest.mark.parametrize("name", RUNS)
def test_it_is_well_formed_and_its_links_lead_somewhere(name):
    checker = checked(html_report(RUNS[name]))
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    for address in checker.links:
        assert address.startswith("https://") or address.removeprefix("#") in checker.ids
    assert not checker.tags & {"script", "img", "link", "iframe", "object", "form", "base"}


def test_it_may_load_nothing_but_its_own_style_sheet():
    report = html_report(LEAKING)
    (style,) = re.findall(r"<style>(.*?)</style>", report, re.DOTALL)
    own = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy() == (f"default-src 'none'; style-src 'sha256-{own}'; base-uri 'none'; form-action 'none'")
    assert "Content-Security-Policy" in report
    assert "url(" not in style
    assert "@import" not in style


def test_it_can_be_read_in_light_and_dark():
    report = html_report(QUIET)
    assert "color-scheme: light dark" in report
    assert "prefers-color-scheme: dark" in report


def test_everything_that_comes_from_a_run_is_escaped():
    finding = unread(
        about=HOSTILE, what=HOSTILE, evidence={HOSTILE: HOSTILE}, control=HOSTILE, rival=HOSTILE, fix=HOSTILE,
        replay=HOSTILE, smallest_effect=HOSTILE, references=(HOSTILE, "javascript:alert(1)"),
    )  # fmt: skip
    report = html_report(
        (
            started(targets=(HOSTILE,), profile=HOSTILE),
            NodeRead(node=HOSTILE, engine=HOSTILE, role=HOSTILE, why=HOSTILE, verdict=HOSTILE),
            CapabilityLearned(name=HOSTILE, value=HOSTILE, how=HOSTILE),
            ScenarioStarted(scenario=f"cross-tenant-reuse{HOSTILE}", hazard=HOSTILE, cost=Cost()),
            answered(f"cross-tenant-reuse{HOSTILE}", 1, HOSTILE, ttft_s=0.1, cached_tokens=3),
            FindingMade(finding=finding, accepted=HOSTILE, scenario=HOSTILE),
            FindingMade(finding=unread(what=HOSTILE, subject_key="other")),
            Noted(text=HOSTILE),
            RunEnded(exit_code=1, why=HOSTILE),
        )
    )
    checker = checked(report)
    assert checker.open == []
    assert "script" not in checker.tags
    assert "\x1b" not in report
    assert "javascript:" not in "".join(checker.links)


def test_a_finding_has_its_section_with_everything_a_reader_needs():
    words = words_of(html_report(LEAKING).split('id="finding-1"')[1].split("</section>")[0])
    for part in (
        "KVF203: A long prompt was answered and never read",
        "65,536 tokens took 17.4 s",
        "the model does not recall at this length",
        "a band of 512 tokens below the context",
        "refuse prompts above 681,280 tokens",
        "kvfence check http://server.example/v1 --replay run-0/boundary/3",
        "1,048,064",
        "CWE-226",
        "profiles/prod.toml, line 7",
        unread().fingerprint,
    ):
        assert part in words


def test_a_finding_of_a_newer_version_has_a_section_without_an_entry():
    report = html_report((started(), FindingMade(finding=unread(code="KVF999"))))
    assert 'id="finding-1"' in report
    assert "How it comes about" not in report


def test_it_says_what_it_does_not_show():
    for events in RUNS.values():
        assert "What this report does not show: that nothing can leak." in words_of(html_report(events))


def test_an_audit_shows_nodes_pairs_and_where_figures_were_read():
    words = words_of(html_report(AUDIT))
    for part in (
        "681,280 1,048,576",
        "too small",
        "unknown : metrics are off",
        "logs/prefill-1.log line 212",
        "681,275",
    ):
        assert part in words, part


def test_parts_without_content_are_left_out():
    checker = checked(html_report(QUIET))
    assert [name for name in checker.ids if not name.startswith("finding")] == [
        "scenarios",
        "causes",
        "notes",
    ]
    assert "boundary interrupted" in re.sub(r"\s+", " ", words_of(html_report(INTERRUPTED)))


# ---------------------------------------------------------------- drawings
BOUNDARY_BEGINS, BOUNDARY_ENDS = LEAKING[5], LEAKING[14]


def ttft_of(*events) -> str | None:
    """The drawing for a boundary scenario with these events."""
    return ttft_plots(Digest.of((started(), BOUNDARY_BEGINS, *events, BOUNDARY_ENDS)))


def test_an_answer_that_came_too_fast_is_an_outlier():
    drawn = ttft_plots(Digest.of(LEAKING))
    assert drawn.count('class="outlier"') == 1
    assert drawn.count("<circle") == 4
    assert "probe: 1,048,064 tokens, 1.200 s, too fast" in drawn
    assert "none can have been read: 1 were so fast" in drawn


def test_on_a_healthy_server_no_answer_is_an_outlier():
    slow = msgspec.structs.replace(TIMED[3], ttft_s=390.0)
    drawn = ttft_of(*CLOCK, *TIMED[:3], slow)
    assert "outlier" not in drawn
    assert "none can have been read: 0 were so fast" in drawn


def test_what_a_token_costs_at_least_goes_before_the_fits_linear_part():
    dear = CapabilityLearned(name="clock.per_token", value=1.0, how="measured")
    assert fit_of(Digest.of((started(), *CLOCK))) == Fit(0.05, 2.5e-4, 1.2e-10, 2.5e-4)
    assert fit_of(Digest.of((started(), *CLOCK, dear))) == Fit(0.05, 2.5e-4, 1.2e-10, 1.0)


def test_without_a_fit_points_alone_are_drawn():
    drawn = ttft_of(*TIMED)
    assert "The run made no fit" in drawn
    assert "<path" not in drawn
    assert fit_of(Digest.of((started(), *CLOCK[:2]))) is None, "a part is missing"


def test_of_two_targets_each_has_the_fit_that_was_told_before_its_end():
    def moved(events, seconds):
        return [
            msgspec.structs.replace(
                event,
                at_s=seconds,
                **({"scenario": "boundary at b"} if hasattr(event, "scenario") else {"value": 9.0}),
            )
            for event in events
        ]

    first = (BOUNDARY_BEGINS, *CLOCK, *TIMED, BOUNDARY_ENDS)
    drawn = ttft_plots(Digest.of((started(), *first, *moved(first, 60.0))))
    assert drawn.count("<svg") == 2
    assert drawn.index("the fit 0.05 s") < drawn.index("boundary at b") < drawn.index("the fit 9 s")


def test_probes_of_scenarios_without_a_clock_are_no_points():
    assert ttft_plots(Digest.of(QUIET)) is None
    assert ttft_of(*CLOCK) is None


def test_a_run_without_reuse_has_no_drawing_of_it():
    assert reuse_plots(Digest.of(QUIET)) is None
    assert reuse_table(Digest.of(QUIET)) is None
    begun = ScenarioStarted(scenario="cross-tenant-reuse", hazard="ordinary", cost=Cost())
    silent = answered("cross-tenant-reuse", 1, "cold", ttft_s=None)
    assert reuse_plots(Digest.of((started(), begun, silent))) is None


def test_reuse_has_a_row_for_each_kind_of_request():
    digest = Digest.of(LEAKING)
    drawn = reuse_plots(digest)
    assert drawn.count('class="median"') == 3
    assert drawn.count("<circle") == 6
    assert re.sub(r"<[^>]+>", "|", reuse_table(digest)).count("896") == 2


def test_linear_axes_begin_at_zero_and_hold_what_they_are_made_for():
    axis = Linear.over(1_048_064, 0, 100)
    assert axis.ticks() == [0, 250_000, 500_000, 750_000, 1_000_000, 1_250_000]
    assert (axis.at(0), axis.at(1_250_000)) == (0, 100)
    assert axis.holds(1_048_064)
    assert not axis.holds(1_250_001)
    assert axis.spread(2) == [0, 625_000, 1_250_000]
    assert Linear.over(0, 0, 100).top > 0


def test_logarithmic_axes_go_from_power_to_power():
    axis = Logarithmic.over([1_024, 65_536], 0, 100)
    assert axis.ticks() == [1_000, 10_000, 100_000]
    assert (axis.at(1_000), axis.at(10_000), axis.at(0), axis.at(1)) == (0, 50, 0, 0)
    assert axis.holds(1_000)
    assert not axis.holds(999)
    assert axis.spread(2) == [1_000, 10_000, 100_000]
    assert Logarithmic.over([], 0, 100).ticks() == [1, 10]
    assert Logarithmic.over([100], 0, 100).ticks() == [100, 1_000]


def test_a_curve_that_is_nowhere_on_its_axes_is_not_drawn():
    x, y = Linear.over(10, 0, 100), Linear.over(10, 0, 100)
    assert curve(x, y, lambda _: 1e9, "fit") == ""
    assert curve(x, y, lambda here: here, "fit").startswith('<path d="M0.0 0.0 L')


# ---------------------------------------------------------------- markup
def test_markup_escapes_text_and_attributes():
    assert text("<a&b>") == "&lt;a&amp;b&gt;"
    assert element("p", text("x"), title='"<') == '<p title="&quot;&lt;">x</p>'
    assert element("meta", http_equiv="x", name=None) == '<meta http-equiv="x"/>'
    assert "<td>1</td>" in table(("a",), [[text(1)]])


def test_links_lead_to_the_web_alone():
    assert link("https://a.example", "a") == '<a href="https://a.example" rel="noreferrer">a</a>'
    assert link("javascript:alert(1)", "a") == "a"
