"""KVF116, KVF117: each fires, and is silent where all is well."""

import pytest
from tests.audit.hearing import node
from tests.audit.readers.samples import LLAMACPP_LOG
from tests.audit.rules.auditing import said, sglang

from kvfence.audit.baseline import Baseline, KeptNode
from kvfence.audit.rules import changed, slots_share

NOW = {"max_total_num_tokens": 10_000, "context_length": 4096, "max_req_input_len": 4090}


def before(version="0.5.23", **figures):
    return Baseline(nodes=[KeptNode(node="node", engine="sglang", engine_version=version, figures=figures)])


@pytest.mark.parametrize(
    ("figures", "severity", "what"),
    [
        ({"pool_tokens": 20_000}, "medium", "its pool was 20,000 tokens and is 10,000"),
        ({"pool_tokens": 9_000}, "low", "its pool was 9,000 tokens and is 10,000"),
        ({"context_tokens": 8192}, "medium", "its context was 8,192 tokens and is 4,096"),
    ],
)
def test_what_changed(figures, severity, what):
    assert said(changed, sglang(**NOW), baseline=before(**figures)) == [("KVF116", severity, "node", what)]


def test_small_differences_of_a_measured_pool_other_versions_and_no_baseline():
    one = sglang(**NOW)
    assert said(changed, one, baseline=before(pool_tokens=10_050, context_tokens=4096)) == []
    assert said(changed, one, baseline=before("0.5.22", pool_tokens=5)) == []
    assert said(changed, one, baseline=Baseline(nodes=[])) == []
    assert said(changed, one) == []
    assert said(changed, sglang(), baseline=before(pool_tokens=5)) == []


def test_slots_that_share_fewer_cells_than_they_could_use():
    (one,) = said(slots_share, node(*LLAMACPP_LOG))
    assert one[:2] == ("KVF117", "medium")
    assert one[3].startswith("4 slots of 2,048 tokens share 2,048 cells")


def test_slots_with_cells_of_their_own_or_enough_of_them():
    own = [line.replace("4/1 seqs", "4/4 seqs").replace("= true", "= false") for line in LLAMACPP_LOG]
    enough = [line.replace("2048 cells", "8192 cells") for line in LLAMACPP_LOG]
    alone = [line for line in LLAMACPP_LOG if "id  3" not in line]
    assert said(slots_share, node(*own), node(*enough), node(*alone), node("nothing")) == []
