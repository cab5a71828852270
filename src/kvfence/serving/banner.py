"""What the operator sees of a deployment: the steps of the start, the banner, warnings.

Progress and warnings go to standard error, the banner to standard output. On a terminal the start is a
table that is drawn in place; elsewhere each step is a line. Lines that are meant to be copied are never
wrapped. It decides nothing and reads nothing but what it is given.
"""

import json
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kvfence.serving.config import ServeConfig
from kvfence.serving.node_config import NodeConfig, RouterConfig
from kvfence.serving.progress import Progress, Ready

CURL_MAX_TOKENS = 48


class StartView:
    """The steps of the start, node by node."""

    def __init__(self, console: Console) -> None:
        """Show on `console`, standard error's."""
        self.console = console
        self._steps: dict[str, str] = {}
        self._live: Live | None = None

    def step(self, node: str, words: str) -> None:
        """Show what a node does now."""
        if self._steps.get(node) == words:
            return
        self._steps[node] = words
        if not self.console.is_terminal:
            self.line(f"{node}: {words}")
            return
        if self._live is None:
            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._table(), refresh=True)

    def line(self, words: str, *, style: str = "") -> None:
        """Print one line, whole, above the table if there is one."""
        self.console.print(Text(words, style=style), soft_wrap=True)

    def warn(self, words: str) -> None:
        """Print a warning."""
        self.line(f"warning: {words}", style="yellow")

    def close(self) -> None:
        """Take the table away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for node, words in self._steps.items():
            table.add_row(Text(node, style="bold"), words)
        return table


def step_words(status: Progress | Ready) -> str:
    """Return what a status says, for people."""
    if isinstance(status, Ready):
        return "ready"
    return status.step if status.total is None else f"{status.step} ({status.done:,} of {status.total:,})"


@dataclass(frozen=True, slots=True)
class BannerFacts:
    """What the banner shows. `nodes` are those that run, with what they reported."""

    version: str
    model_id: str
    has_chat_template: bool
    url: str
    context_tokens: int
    nodes: tuple[tuple[NodeConfig, Ready], ...]
    run_dir: str


def largest_request_tokens(facts: BannerFacts) -> int:
    """Law 6: the context, or the smallest pool where that is less."""
    pools = [ready.pool_tokens for _, ready in facts.nodes if ready.pool_tokens is not None]
    return min([facts.context_tokens, *pools])


def show_banner(console: Console, config: ServeConfig, facts: BannerFacts) -> None:
    """Print the banner on standard output's console."""
    limit = largest_request_tokens(facts)
    console.print(
        Text.assemble(("kvfence ", "bold"), facts.version, "  serves ", (facts.model_id, "bold")),
        soft_wrap=True,
    )
    console.print(_nodes_table(facts))
    for label, words in (
        ("fence", config.fence),
        ("transport", config.transport),
        ("context", f"{facts.context_tokens:,} tokens; largest request {limit:,} tokens"),
        ("logs", facts.run_dir),
        ("URL", facts.url),
        ("try", curl_line(config, facts)),
    ):
        console.print(Text.assemble((f"{label:>10}  ", "dim"), words), soft_wrap=True)
    if config.is_unsafe:
        console.print(unsafe_panel(config))
    console.print(Text("Ctrl-C drains and stops; once more stops at once.", style="dim"))


def _nodes_table(facts: BannerFacts) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("node", no_wrap=True)
    for heading in ("pool tokens", "context", "pool/context", "MiB", "threads", "cpus"):
        table.add_column(heading, justify="right", no_wrap=True)
    for node, ready in facts.nodes:
        cpus = "any" if node.cpus is None else ",".join(map(str, node.cpus))
        figures = ("", "", "", "")
        if not isinstance(node, RouterConfig) and ready.pool_tokens is not None:
            share = f"{ready.pool_tokens / facts.context_tokens:.2f}"
            mebibytes = "" if ready.pool_bytes is None else f"{ready.pool_bytes / 2**20:,.0f}"
            figures = (f"{ready.pool_tokens:,}", f"{facts.context_tokens:,}", share, mebibytes)
        table.add_row(node.node, *figures, str(node.threads), cpus)
    return table


def curl_line(config: ServeConfig, facts: BannerFacts) -> str:
    """Return one line that gives an answer when it is pasted into a shell."""
    question = "What is the capital of France?"
    # Greedy: a small model at temperature 1 rambles, and the first answer should show that all is well.
    body: dict[str, object] = {"model": facts.model_id, "max_tokens": CURL_MAX_TOKENS, "temperature": 0}
    if facts.has_chat_template:
        path, body["messages"] = "chat/completions", [{"role": "user", "content": question}]
    else:
        path, body["prompt"] = "completions", question
    key = "" if config.api_keys is None else ' -H "Authorization: Bearer $KVFENCE_API_KEY"'
    return (
        f"curl -s {facts.url}/v1/{path} -H 'Content-Type: application/json'{key} "
        f"-d '{json.dumps(body, ensure_ascii=False)}'"
    )


def unsafe_panel(config: ServeConfig) -> Panel:
    """Return the red warning of a deployment that leaks by its operator's wish."""
    words = ["This deployment lets one tenant read another's data, as its operator asked."]
    if config.is_fence_off:
        words.append("The fence is off.")
    words += [f"Fault: {fault}" for fault in config.unsafe_faults]
    words += [f"Without: {layer}" for layer in config.unsafe_without]
    return Panel(Text("\n".join(words)), title="UNSAFE", border_style="bold red", style="bold red")
