"""Calls and statements that the house does not use, each with what stands in its place.

`where` limits a ban to some packages. An exception is written down in `ALLOWED`, with its reason; one that
is not needed any more is a fault too.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.house.source import Module

EVERYWHERE = ("*",)
# Every package but `simulation`, which is a function of its seed through `random.Random(seed)`.
UNSEEDED = (
    "protocol",
    "kv",
    "transport",
    "faults",
    "engine",
    "serving",
    "world",
    "verification",
    "replay",
    "cli",
)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute, "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def calls(*names: str) -> Callable[[ast.AST], bool]:
    """Calls of one of these dotted names."""
    return lambda node: isinstance(node, ast.Call) and dotted(node.func) in names


def touches(*names: str) -> Callable[[ast.AST], bool]:
    """Any mention of one of these dotted names."""
    return lambda node: isinstance(node, ast.Name | ast.Attribute) and dotted(node) in names


def imports(*names: str) -> Callable[[ast.AST], bool]:
    """Imports of one of these modules."""

    def found(node: ast.AST) -> bool:
        if isinstance(node, ast.Import):
            return any(alias.name.split(".")[0] in names for alias in node.names)
        return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in names

    return found


def with_keyword(name: str) -> Callable[[ast.AST], bool]:
    """Calls with `name=True`."""

    def found(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and any(
            word.arg == name and isinstance(word.value, ast.Constant) and word.value.value is True
            for word in node.keywords
        )

    return found


def _names_everything(node: ast.AST | None) -> bool:
    names = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(name is None or dotted(name) in ("Exception", "BaseException") for name in names)


def swallows(node: ast.AST) -> bool:
    """`except Exception: pass` in any of its spellings."""
    if isinstance(node, ast.ExceptHandler):
        does_nothing = all(
            isinstance(step, ast.Pass | ast.Continue)
            or (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant))
            for step in node.body
        )
        return does_nothing and _names_everything(node.type)
    is_suppress = isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] == "suppress"
    return is_suppress and any(_names_everything(argument) for argument in node.args)


@dataclass(frozen=True)
class Ban:
    """What is not used, and what is used instead."""

    what: str
    found: Callable[[ast.AST], bool]
    instead: str
    where: tuple[str, ...] = EVERYWHERE


BANS = (
    Ban("assert", lambda node: isinstance(node, ast.Assert), "invariant(condition, why): -O strips assert"),
    Ban("global", lambda node: isinstance(node, ast.Global), "an object that owns the state"),
    Ban("print", calls("print"), "a rich Console in banner.py or the CLI; structlog in a node"),
    Ban("swallow", swallows, "handle what can happen, and let the rest go up"),
    Ban("environ", touches("os.environ", "os.getenv", "os.putenv"), "a parameter that the CLI fills"),
    Ban("pickle", imports("pickle", "marshal", "shelve", "dill"), "msgspec: data, never code"),
    Ban("torch.load", calls("torch.load"), "safetensors: data, never code"),
    Ban("eval", calls("eval", "exec", "compile", "__import__"), "a table of what may be named"),
    Ban("remote code", with_keyword("trust_remote_code"), "a refusal that names the architecture"),
    Ban("yaml.load", calls("yaml.load"), "tomllib, or yaml.safe_load"),
    Ban("shell", with_keyword("shell"), "a list of arguments"),
    Ban("os.system", calls("os.system", "os.popen"), "subprocess with a list of arguments"),
    Ban("os.kill", calls("os.kill", "os.killpg"), "processes.kill_process: numbers are reused"),
    Ban("mktemp", calls("tempfile.mktemp"), "tempfile.mkdtemp: a name alone can be taken by another"),
    Ban("sleep", calls("time.sleep"), "waiting for the thing itself, with a deadline"),
    Ban("wall clock", calls("time.time", "time.time_ns"), "time.monotonic: the wall clock jumps"),
    Ban("utcnow", calls("datetime.utcnow", "datetime.datetime.utcnow"), "datetime.now(UTC)"),
    Ban("hash()", calls("hash"), "hashlib: hash() differs between processes", ("protocol", "kv")),
    Ban("id()", calls("id"), "a number that the server drew: id() is reused", ("protocol", "kv", "serving")),
    Ban("random", imports("random"), "secrets for ids and keys; (seed, position) in the sampler", UNSEEDED),
    Ban("numpy.random", touches("np.random", "numpy.random"), "sampler.uniform(seed, position)"),
    Ban("torch.rand", calls("torch.rand", "torch.multinomial"), "sampler.uniform(seed, position)"),
)

# (place, ban) → why it may stand there
ALLOWED: dict[tuple[str, str], str] = {
    ("engine/loading.py", "environ"): "the user's cache directory, asked for in one function",
    ("cli/audit_run.py", "environ"): "the edge: keys are named by their variables",
    (
        "check/pytest_plugin.py",
        "environ",
    ): "an edge, as the command line is: keys are named by their variables",
    ("cli/check_run.py", "environ"): "the edge: keys are named by their variables",
    ("cli/watch_run.py", "environ"): "the edge: keys are named by their variables",
    ("cli/replay.py", "environ"): "the edge: deployments of the replay inherit it",
    ("cli/serve.py", "environ"): "the edge: from here on it is a parameter",
    ("serving/node_main.py", "wall clock"): "an incarnation must be greater than those before a reboot",
    ("serving/router_main.py", "wall clock"): "the start time that /server_info shows to people",
    ("serving/router_node.py", "wall clock"): "the same, to say how long ago it was",
}


def banned_in(module: Module) -> Iterator[tuple[str, str]]:
    """(ban, message) for each find."""
    for node in ast.walk(module.tree):
        for ban in BANS:
            if (ban.where == EVERYWHERE or module.package in ban.where) and ban.found(node):
                line = getattr(node, "lineno", 0)
                yield ban.what, f"{module.place}:{line}: no {ban.what} here; instead: {ban.instead}"
