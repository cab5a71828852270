"""KVF114, KVF115, KVF119: each fires, and is silent where all is well."""

import pytest
from tests.audit.hearing import node
from tests.audit.rules.auditing import said, sglang

from kvfence.audit.rules import beside_the_router, open_to_anyone, unreachable

FAR, NEAR = "http://10.0.0.1:30000", "http://127.0.0.1:30000"
ROUTER = node("nothing", name="r", role="router")


@pytest.mark.parametrize(("url", "severity"), [(FAR, "medium"), (NEAR, "info")])
def test_what_anybody_can_read(url, severity):
    assert said(open_to_anyone, sglang(url=url)) == [
        ("KVF114", severity, "node", "/server_info answered without a key")
    ]


def test_a_key_that_anybody_can_read():
    one = said(open_to_anyone, sglang(url=FAR, api_key="s3cret"))[0]
    assert one[1] == "high" and "the API key itself is in the answer" in one[3]
    assert "s3cret" not in repr(one)
    assert said(open_to_anyone, sglang(url=NEAR, api_key="s3cret"))[0][1] == "info"


def test_models_may_be_open_and_what_was_read_from_files_was_not_asked_for():
    models = node(pages={"/v1/models": {"object": "list", "data": []}}, url=FAR)
    assert said(open_to_anyone, models, sglang()) == []


@pytest.mark.parametrize(("url", "severity"), [(FAR, "high"), (NEAR, "info")])
def test_a_worker_that_answers_beside_the_router(url, severity):
    one = sglang("p", "prefill", url=url)
    assert said(beside_the_router, ROUTER, one) == [
        ("KVF115", severity, "p", "it answered without a key beside the router")
    ]


def test_workers_without_a_router_and_workers_that_want_a_key():
    open_one, closed = sglang("p", "prefill", url=FAR), sglang("d", "decode")
    assert said(beside_the_router, open_one) == []
    assert said(beside_the_router, ROUTER, closed, sglang("s", url=FAR)) == []


def test_a_node_that_was_not_reached_although_its_log_was_read():
    silent, logged = node(name="a", failure="gone"), node("max_total_num_tokens=1", name="b", failure="gone")
    assert said(unreachable, silent, logged, sglang("c")) == [
        ("KVF119", "medium", "a", "gone"),
        ("KVF119", "medium", "b", "gone"),
    ]
