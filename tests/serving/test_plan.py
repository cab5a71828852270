"""What would be started, for given settings and a given machine."""

import pytest
from tests.serving.fake_deployment import FakeModel

from kvfence.kv import memory
from kvfence.protocol.errors import OperatorError
from kvfence.serving.config import load_config
from kvfence.serving.node_config import DecodeConfig, NodeTimes, PrefillConfig, RouterConfig
from kvfence.serving.plan import Machine, model_context_tokens, plan_nodes
from kvfence.serving.rundir import RunDir

MACHINE = Machine((4, 5, 6, 7), 16 << 30)


@pytest.fixture
def run_dir(tmp_path):
    return RunDir(tmp_path / "d", -1)


def plan(run_dir, *, machine=MACHINE, model=None, lifts_capacity=False, **settings):
    return plan_nodes(
        load_config(settings), model or FakeModel(), run_dir, machine, lifts_capacity=lifts_capacity
    )


def test_one_of_each_by_default(run_dir):
    made = plan(run_dir)
    assert made.names == ("router", "prefill-0", "decode-0")
    router, prefill, decode = (spec.config for spec in made.nodes)
    assert isinstance(router, RouterConfig)
    assert isinstance(prefill, PrefillConfig)
    assert isinstance(decode, DecodeConfig)
    assert (prefill.threads, prefill.cpus) == (2, (4, 5))
    assert (decode.threads, decode.cpus) == (2, (6, 7))
    assert (router.threads, router.cpus) == (1, None)
    assert router.prefill_nodes == ("prefill-0",)
    assert router.decode_nodes == ("decode-0",)
    assert router.tenant_tokens_max == 4 * 128
    assert {node.context_tokens for node in (router, prefill, decode)} == {128}
    assert {node.times for node in (router, prefill, decode)} == {NodeTimes()}, "the defaults are the same"
    assert prefill.pool_tokens is None
    assert prefill.pool_bytes_max == 2 << 30
    assert made.warning is None
    assert not made.fits


def test_what_the_operator_said_reaches_its_node(run_dir):
    made = plan(
        run_dir,
        prefill=2,
        decode=3,
        pool_tokens=500,
        decode_pool_tokens=700,
        context=100,
        threads=1,
        posting_timeout_s=0.25,
        tenant_tokens_max=5,
        batch_size=3,
        unsafe_faults=("x",),
        unsafe_without=("y",),
        i_understand_this_leaks_data=True,
    )
    assert made.names == ("router", "prefill-0", "prefill-1", "decode-0", "decode-1", "decode-2")
    configs = {spec.name: spec.config for spec in made.nodes}
    assert configs["prefill-1"].pool_tokens == 500
    assert configs["decode-2"].pool_tokens == 700
    assert configs["decode-2"].batch_size == 3
    assert configs["decode-2"].times.posting_ms == 250
    assert configs["router"].tenant_tokens_max == 5
    assert {config.context_tokens for config in configs.values()} == {100}
    assert {config.faults for config in configs.values()} == {("x",)}
    assert {config.layers_off for config in configs.values()} == {("y",)}
    assert "5 nodes" in made.warning
    assert made.nodes[1].environment["OMP_WAIT_POLICY"] == "passive"
    assert "OMP_WAIT_POLICY" not in made.nodes[0].environment


def test_law_6_for_named_pools(run_dir):
    with pytest.raises(OperatorError, match="128 tokens is larger than the decode-0 pool of 127"):
        plan(run_dir, decode_pool_tokens=127)
    assert plan(run_dir, pool_tokens=128).context_tokens == 128
    assert plan(run_dir, pool_tokens=127, context="fit").fits
    assert plan(run_dir, pool_tokens=127, lifts_capacity=True).fits


def test_a_context_that_the_model_was_not_made_for_is_refused(run_dir):
    with pytest.raises(OperatorError, match=r"129 tokens is longer than the 128 .*lower --context"):
        plan(run_dir, context=129)


def test_a_model_that_does_not_say_its_context_needs_one(run_dir):
    silent = FakeModel(config={})
    with pytest.raises(OperatorError, match="give --context"):
        plan(run_dir, model=silent)
    assert plan(run_dir, model=silent, context=99).context_tokens == 99


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 7}, "max_position_embeddings": 9}, 7),
        ({"max_position_embeddings": True}, None),
        ({"max_position_embeddings": "many", "n_ctx": 5}, 5),
        ({}, None),
    ],
)
def test_where_a_models_context_stands(config, tokens):
    assert model_context_tokens(config) == tokens


def test_a_machine_that_does_not_say_its_memory_sets_no_bound(run_dir):
    made = plan(run_dir, machine=Machine((0,), None))
    assert made.nodes[1].config.pool_bytes_max is None
    assert memory.available_memory_bytes() is None or memory.available_memory_bytes() > 0
