"""The probe finds what layers ask for, and refuses what paged attention would not honour."""

from types import SimpleNamespace

import pytest
import torch
from tests.engine.tiny_models import served

from kvfence.engine.attention import AttentionCall, attention
from kvfence.engine.probe import Recorder
from kvfence.protocol.errors import OperatorError


def call(**changes):
    facts = {
        "layer": 0, "query": torch.zeros(1, 4, 3, 8), "key": torch.zeros(1, 2, 3, 8), "value": torch.zeros(1, 2, 3, 6),
        "mask": None, "scaling": 0.5, "window": None, "softcap": None, "sinks": None, "causal": True, "other": {},
    }  # fmt: skip
    return AttentionCall(**{**facts, **changes})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama", (4, 2, 8, 8)),
        ("gpt2", (4, 4, 8, 8)),
        ("deepseek_v3", (4, 4, 16, 12)),
    ],
)
def test_shapes_come_from_the_pass(name, expected):
    fact = served(name).facts[0]
    assert (fact.query_heads, fact.kv_heads, fact.k_dim, fact.v_dim) == expected


def test_windows_caps_and_sinks_are_seen_layer_by_layer():
    assert [fact.window for fact in served("gemma3").facts] == [12, None, 12]
    assert {fact.softcap for fact in served("gemma2").facts} == {5.0}
    assert all(fact.sinks for fact in served("gpt_oss").facts)
    assert not any(fact.sinks for fact in served("llama").facts)


def test_the_recorder_answers_in_the_shape_of_attention():
    recorder = Recorder()
    assert recorder.attend(call()).shape == (1, 3, 4, 6)
    assert recorder.seen[0].shape.v_dim == 6


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mask": torch.zeros(1)}, "mask of its own"),
        ({"causal": False}, "bidirectional"),
        ({"other": {"position_bias": torch.zeros(1)}}, "hands position_bias"),
        ({"key": torch.zeros(1, 3, 3, 8)}, "no multiple"),
        ({"key": torch.zeros(1, 2, 5, 8)}, "one key for each token"),
        ({"value": torch.zeros(1, 1, 3, 8)}, "do not fit"),
    ],
)
def test_what_is_not_honoured_is_refused(changes, reason):
    with pytest.raises(OperatorError, match=reason):
        Recorder().attend(call(**changes))


def test_keywords_that_change_nothing_are_let_through():
    Recorder().attend(call(other={"position_bias": None, "dropout": 0.0, "position_ids": torch.zeros(1)}))


def test_a_layer_that_attends_twice_is_refused():
    recorder = Recorder()
    recorder.attend(call())
    with pytest.raises(OperatorError, match="twice"):
        recorder.attend(call())


@pytest.mark.parametrize(("module", "keywords", "reason"), [
    (SimpleNamespace(layer_idx=0), {}, "drop the keyword arguments"),
    (SimpleNamespace(), {"kv": Recorder()}, "no layer number"),
])  # fmt: skip
def test_the_attention_function_refuses_calls_it_cannot_place(module, keywords, reason):
    one = torch.zeros(1, 1, 1, 4)
    with pytest.raises(OperatorError, match=reason):
        attention(module, one, one, one, None, **keywords)
