"""A rule of the audit passes only where it had all that it looks at."""

import msgspec
import pytest

from kvfence.report.digest import Digest
from kvfence.report.events import NodeRead, PairRead, RunEnded
from kvfence.report.junit_rules import why_not_judged
from tests.report.samples import AUDIT, started

NODE = NodeRead(
    node="d", engine="sglang", engine_version="0.5.22", figures=AUDIT[1].figures, verdict="ok", role="decode"
)
SERVER = ("http://d:1",)
PAIR = PairRead(prefill="p", decode="d")
END = RunEnded(exit_code=0, why="none")


def why(number, *events, targets=SERVER):
    return why_not_judged(number, Digest.of((started("audit", targets=targets), *events)))


@pytest.mark.parametrize("number", ["KVF101", "KVF102", "KVF105", "KVF106", "KVF109", "KVF114", "KVF119"])
def test_a_rule_that_had_everything_passes(number):
    assert why(number, NODE, PAIR, END) is None


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("KVF102", "no pair"),
        ("KVF106", "no pair"),
        ("KVF110", "about vllm"),
        ("KVF116", "baseline"),
        ("KVF117", "about llama.cpp"),
    ],
)
def test_a_rule_without_its_pair_engine_or_baseline_does_not(number, said):
    assert said in why(number, NODE, END)


def test_a_version_that_was_not_read_judges_no_version():
    nameless = msgspec.structs.replace(NODE, engine_version=None)
    assert why("KVF105", nameless, END) == "version unknown: d"


def test_a_log_is_open_to_nobody():
    assert "no server was asked" in why("KVF114", NODE, END, targets=("sg.log",))


def test_unknown_figures_no_node_and_a_cut_run():
    unknown = msgspec.structs.replace(NODE, verdict="unknown")
    assert why("KVF101", unknown, END) == "pool or context unknown: d"
    assert why("KVF119", END) == "no node was read"
    assert why("KVF119", NODE) == "the run was interrupted"
