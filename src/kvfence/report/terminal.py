"""A run's summary in a terminal: what a reader needs in five seconds, with the worst finding first.

Rules it keeps:
- The first line is the worst open finding with its numbers; without one, what was not seen and how often it
  had its chance.
- Nothing claims that a server cannot leak. What was not tested has its line, like what was.
- Words of servers are made plain before they are shown.
"""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvfence.report.digest import Digest, Story
from kvfence.report.events import AnyEvent, FindingMade, NodeRead
from kvfence.report.finding import Severity, Verdict
from kvfence.report.plain import counted, figure, listed, plain
from kvfence.report.root_causes import looked_for

FINDINGS_SHOWN_MAX = 10
STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}
VERDICT_STYLES = {
    Verdict.LEAK: "bold red",
    Verdict.UNREAD: "bold red",
    Verdict.TRUNCATED: "red",
    Verdict.HANG: "red",
    Verdict.SUSPECT: "yellow",
    Verdict.EXPOSED: "yellow",
    Verdict.NO_EVIDENCE: "green",
    Verdict.NOT_TESTED: "dim",
    Verdict.INCONCLUSIVE: "magenta",
}
NODE_STYLES = {
    "ok": "green",
    "too small": "bold red",
    "unknown": "yellow",
    "unreachable": "magenta",
    "no pool": "dim",
}
INDENT = "    "


def print_summary(console: Console, events: Iterable[AnyEvent]) -> None:
    """Print the summary of a run. Lines are left whole, so that the first holds its numbers; tables fit."""
    for part in summary(Digest.of(events)):
        console.print(part, soft_wrap=isinstance(part, Text), highlight=False, markup=False, emoji=False)


def summary(digest: Digest) -> Iterator[Text | Table]:
    """Yield the summary of a run, line by line and table by table."""
    yield from _findings(digest)
    if digest.nodes:
        yield Text()
        yield node_table(digest)
        yield from (_pair_line(pair.prefill, pair.decode, pair.limit_tokens) for pair in digest.pairs)
    if digest.scenarios:
        yield Text()
        yield scenario_table(digest)
    if digest.notes:
        yield Text()
        yield from (_note(note.text, is_warning=note.is_warning) for note in digest.notes)
    yield Text()
    yield from _last_lines(digest)


def _findings(digest: Digest) -> Iterator[Text]:
    """Open findings, worst first, the first of them at length; then how many are accepted."""
    opened = digest.open_findings
    if not opened:
        yield Text(digest.headline, "bold")
    for number, made in enumerate(opened[:FINDINGS_SHOWN_MAX]):
        yield finding_line(made)
        yield from _more(made) if number == 0 else ()
    hidden = len(opened) - FINDINGS_SHOWN_MAX
    if hidden > 0:
        yield Text(f"and {counted(hidden, 'finding', 'findings')} more, in the report files", "dim")
    accepted = len(digest.findings) - len(opened)
    if accepted and opened:
        yield Text(f"{counted(accepted, 'finding', 'findings')} accepted by the baseline", "dim")


def finding_line(made: FindingMade) -> Text:
    """One finding in a line."""
    finding = made.finding
    head = f"{finding.severity.upper()} {finding.code}"
    text = Text.assemble((head, STYLES[finding.severity]), f" {plain(finding.about)}: {plain(finding.what)}")
    if made.accepted is not None:
        text.append(f" (accepted: {plain(made.accepted)})", "dim")
    return text


def _more(made: FindingMade) -> Iterator[Text]:
    finding = made.finding
    for name, words in (
        ("control", finding.control),
        ("it could also be", finding.rival),
        ("to do", finding.fix),
        ("replay", finding.replay),
    ):
        if words is not None:
            yield Text.assemble(INDENT, (f"{name}: ", "dim"), plain(words))


def node_table(digest: Digest) -> Table:
    """Nodes with pool, context, ratio and verdict."""
    table = _table("node", "pool", "context", "ratio", "verdict", right=("pool", "context", "ratio"))
    for node in digest.nodes:
        table.add_row(
            Text(_node_name(node)),
            _figure_of(node, "pool_tokens"),
            _figure_of(node, "context_tokens"),
            "?" if node.ratio is None else f"{node.ratio:.2f}",
            Text.assemble((plain(node.verdict), NODE_STYLES.get(node.verdict, "yellow")), _because(node.why)),
        )
    return table


def _node_name(node: NodeRead) -> str:
    known = [word for word in (node.role, node.engine, node.engine_version) if word is not None]
    return plain(f"{node.node} ({' '.join(known)})" if known else node.node)


def _figure_of(node: NodeRead, name: str) -> str:
    return figure(node.figures[name].value) if name in node.figures else "?"


def _because(why: str) -> str:
    return f": {plain(why)}" if why else ""


def _pair_line(prefill: str, decode: str, limit: int | None) -> Text:
    words = "limit unknown" if limit is None else f"limit {limit:,} tokens"
    return Text(f"pair {plain(prefill)} → {plain(decode)}: {words}")


def scenario_table(digest: Digest) -> Table:
    """Scenarios with their verdicts and how much each looked at."""
    table = _table("scenario", "verdict", "chances", "rate below", "why", right=("chances", "rate below"))
    for story in digest.scenarios:
        verdict, why = _verdict(story)
        bound = None if story.ended is None else story.ended.bound
        table.add_row(
            Text(plain(story.name)),
            verdict,
            "" if bound is None else f"{bound.opportunities:,}",
            "" if bound is None else f"{bound.upper_95:.2%}",
            Text(why),
        )
    return table


def _verdict(story: Story) -> tuple[Text, str]:
    if story.ended is None:
        return Text("interrupted", "magenta"), "it did not come to its end"
    return Text(story.ended.verdict.value, VERDICT_STYLES[story.ended.verdict]), plain(story.ended.why)


def _note(words: str, *, is_warning: bool) -> Text:
    return Text.assemble(("warning: ", "yellow") if is_warning else ("note: ", "dim"), plain(words))


def _last_lines(digest: Digest) -> Iterator[Text]:
    if digest.ended is None:
        yield Text("interrupted: the run has no end; what it saw until then is above", "magenta")
    else:
        yield Text(f"exit {digest.ended.exit_code}: {plain(digest.ended.why)}")
    if digest.scenarios:
        yield Text(_looked(digest), "dim")
    codes = dict.fromkeys(made.finding.code for made in digest.open_findings)
    if codes:
        yield Text(f"kvfence explain CODE says what to do: {listed(codes)}", "dim")


def _looked(digest: Digest) -> str:
    causes = looked_for(digest)
    seen = sum(bool(cause.verdicts) for cause in causes)
    where = "which scenario looked for each, and what stays out of sight, is in --html and --json"
    return f"root causes: {seen} of {len(causes)} looked for; {where}"


def _table(*headings: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=heading in right)
    return table
