"""The tables of the HTML report: findings, nodes, pairs, scenarios, what was learned of the server.

Rules it keeps: a verdict stands in words, its colour is an addition; what is unknown is called so.
"""

from kvfence.report.digest import Digest, Story
from kvfence.report.events import FindingMade, NodeRead
from kvfence.report.html_markup import Markup, element, facts, joined, table, text
from kvfence.report.plain import counted, figure
from kvfence.report.root_causes import looked_for


def tag(words: str) -> Markup:
    """A severity or a verdict; its class is its words, as far as they are letters."""
    name = "-".join("".join(letter for letter in word if letter.isalpha()) for word in words.split())
    return element("span", text(words), class_=f"tag {name}")


def findings_table(digest: Digest) -> Markup:
    """Every finding in a line, with a link to its section."""
    rows = [_finding_row(number, made) for number, made in enumerate(digest.findings, start=1)]
    return table(("severity", "code", "about", "what was seen", ""), rows)


def _finding_row(number: int, made: FindingMade) -> tuple[Markup, ...]:
    finding = made.finding
    return (
        tag(finding.severity.value),
        element("a", text(finding.code), href=f"#finding-{number}", class_="tag"),
        text(finding.about),
        text(finding.what),
        text("accepted" if made.accepted is not None else "open"),
    )


def nodes_table(digest: Digest) -> Markup:
    """Nodes with their figures."""
    headings = (
        "node",
        "role",
        "engine",
        "pool",
        "context",
        "largest request",
        "advertised",
        "ratio",
        "verdict",
    )
    return table(headings, [_node_row(node) for node in digest.nodes])


def _node_row(node: NodeRead) -> tuple[Markup, ...]:
    engine = " ".join(word for word in (node.engine, node.engine_version) if word is not None)
    names = ("pool_tokens", "context_tokens", "largest_request_tokens", "advertised_tokens")
    return (
        text(node.node),
        text(node.role or "unknown"),
        text(engine or "unknown"),
        *(_figure(node, name) for name in names),
        text("unknown" if node.ratio is None else f"{node.ratio:.2f}"),
        joined((tag(node.verdict), text(f": {node.why}" if node.why else ""))),
    )


def _figure(node: NodeRead, name: str) -> Markup:
    if name not in node.figures:
        return tag("unknown")
    return text(figure(node.figures[name].value))


def sources_table(digest: Digest) -> Markup:
    """Return where each figure was read."""
    rows = [
        (text(node.node), text(name), text(figure(read.value)), text(read.read_from))
        for node in digest.nodes
        for name, read in node.figures.items()
    ]
    return table(("node", "figure", "value", "read from"), rows)


def pairs_table(digest: Digest) -> Markup:
    """Pairs with their limits."""
    rows = [(text(pair.prefill), text(pair.decode), text(figure(pair.limit_tokens))) for pair in digest.pairs]
    return table(("prefill", "decode", "limit in tokens"), rows)


def scenarios_table(digest: Digest) -> Markup:
    """Scenarios with their verdicts, and what the verdict rests on."""
    headings = ("scenario", "verdict", "why", "chances", "rate below (95 %)", "requests", "control")
    return table(headings, [_scenario_row(story) for story in digest.scenarios])


def _scenario_row(story: Story) -> tuple[Markup, ...]:
    ended, requests = story.ended, text(figure(len(story.answers)))
    if ended is None:
        cut = text("it did not come to its end")
        return text(story.name), tag("interrupted"), cut, text(""), text(""), requests, text("")
    bound = ended.bound
    why = [ended.why]
    if ended.smallest_effect is not None:
        why.append(f"Smallest effect that it could have seen: {ended.smallest_effect}")
    if ended.p_value is not None:
        why.append(f"p = {ended.p_value:.3g}")
    return (
        text(story.name),
        tag(ended.verdict.value),
        joined(element("div", text(words)) for words in why),
        text("" if bound is None else figure(bound.opportunities)),
        text("" if bound is None else f"{bound.upper_95:.2%}"),
        requests,
        text(ended.control or ""),
    )


def root_causes_table(digest: Digest) -> Markup:
    """Each root cause with who looked for it in this run, and what of it stays out of sight from outside."""
    rows = []
    for looked in looked_for(digest):
        who = [
            element("div", text(f"{scenario}: "), tag(verdict.value)) for scenario, verdict in looked.verdicts
        ]
        rows.append(
            (text(looked.root), joined(who) if who else text("nobody in this run"), text(looked.limit))
        )
    return table(("class", "looked for by", "what stays out of sight"), rows)


def capabilities_table(digest: Digest) -> Markup:
    """Return what was learned of the server, and how."""
    rows = [
        (text(capability.name), text(figure(capability.value)), text(capability.how))
        for capability in digest.capabilities
    ]
    return table(("what", "value", "how it was learned"), rows)


def run_facts(digest: Digest) -> Markup:
    """Return what was run, on what, and how it ended."""
    started, ended = digest.started, digest.ended
    pairs = [
        ("targets", joined(element("div", text(target)) for target in started.targets)),
        ("started", text(started.started)),
        ("run", text(started.run)),
        ("profile", None if started.profile is None else text(started.profile)),
        ("seed", None if started.seed is None else text(started.seed)),
        ("requests", text(counted(len(digest.answers), "answer", "answers")) if digest.answers else None),
        ("ended", text("interrupted" if ended is None else f"exit code {ended.exit_code}: {ended.why}")),
        ("made by", text(f"kvfence {started.tool} {started.version}")),
    ]
    return facts((name, value) for name, value in pairs if value is not None)
