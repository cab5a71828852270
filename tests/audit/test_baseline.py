"""Figures of an audit, kept and read again."""

import json

import pytest
from tests.audit.hearing import node
from tests.audit.readers.samples import SGLANG_INFO

from kvfence.audit.baseline import Baseline, baseline_of, read_baseline, write_baseline
from kvfence.protocol.errors import OperatorError


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "figures.json"
    heard, silent = node(pages={"/server_info": SGLANG_INFO}), node(name="b", failure="gone")
    write_baseline(path, [heard, silent])
    assert json.loads(path.read_text()) == {
        "format": 1,
        "nodes": [
            {
                "node": "node",
                "engine": "sglang",
                "engine_version": "0.5.23",
                "figures": {"pool_tokens": 2944, "context_tokens": 2048, "largest_request_tokens": 2042},
            }
        ],
    }
    read = read_baseline(path)
    assert read == baseline_of([heard])
    assert read.of("node").engine == "sglang"
    assert read.of("b") is None


def test_a_node_that_is_not_heard_keeps_its_figures(tmp_path):
    before = baseline_of([node(pages={"/server_info": SGLANG_INFO}, name="a")])
    silent, never_heard = node(name="a", failure="gone"), node(name="b", failure="gone")
    write_baseline(tmp_path / "x", [silent, never_heard], before)
    assert read_baseline(tmp_path / "x") == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no baseline of figures"),
        ('{"nodes": [], "more": 1}', "is no baseline of figures"),
        ('{"format": 2, "nodes": []}', "has format 2"),
    ],
)
def test_a_file_that_is_no_baseline(tmp_path, text, said):
    path = tmp_path / "figures.json"
    path.write_text(text)
    with pytest.raises(OperatorError, match=said):
        read_baseline(path)


def test_a_file_that_is_not_there_and_one_that_cannot_be_written(tmp_path):
    with pytest.raises(OperatorError, match="--write-baseline"):
        read_baseline(tmp_path / "none")
    with pytest.raises(OperatorError, match="cannot write"):
        write_baseline(tmp_path / "none" / "x", [])
    assert Baseline(nodes=[]).of("a") is None
