"""Hearing all nodes: keys by name, files once, the silent beside the others."""

import io
import json

import httpx
import pytest
from tests.audit.readers.samples import SGLANG_FINAL, SGLANG_INFO
from tests.audit.serving import Answers, Streaming
from tests.check.virtual import run

from kvfence.audit.deployment import Access, Deployment, NodeSpec
from kvfence.audit.gather import Around, hear_all, key_of
from kvfence.protocol.errors import OperatorError


def heard(*specs, answers=None, access=None, environment=None, stdin=None, transport=None):
    around = Around(environment or {}, stdin, transport or (answers or Answers({})).transport())
    return run(hear_all(Deployment(specs, access=access or Access()), around))


def test_answers_come_before_files_of_the_same_node(tmp_path):
    log, saved = tmp_path / "a.log", tmp_path / "info.json"
    log.write_text(SGLANG_FINAL)
    saved.write_text(json.dumps(SGLANG_INFO))
    spec = NodeSpec(name="a", url="http://a", log=log, saved=(saved,))
    (one,) = heard(spec, answers=Answers({"/version": {"version": "1"}}))
    assert [page.origin for page in one.pages] == ["GET /version", "info.json"]
    assert (len(one.logs), one.open_paths, one.failure) == (1, ("/version",), None)


def test_one_that_is_silent_stops_nobody():
    def handle(request):
        if request.url.host == "gone":
            raise httpx.ConnectError("no")
        return httpx.Response(200, json={"version": "1"})

    specs = [NodeSpec(name=name, url=f"http://{name}") for name in ("gone", "there")]
    gone, there = heard(*specs, transport=Streaming(handle))
    assert (gone.failure, there.failure) == ("nothing answers at this address", None)
    assert there.pages


def test_each_node_has_its_own_key_or_that_of_all():
    answers = Answers({"/metrics": "a 1\n"}, key="own", locked=("/metrics",))
    spec = NodeSpec(name="a", url="http://a", key_env="OWN")
    heard(spec, answers=answers, access=Access(key_env="ALL"), environment={"ALL": "x", "OWN": "own"})
    assert {key for *_, key in answers.asked if key} == {"Bearer own"}
    assert key_of(NodeSpec(name="b", url="http://b"), Access(key_env="ALL"), {"ALL": "x"}) == "x"
    assert key_of(NodeSpec(name="b"), Access(key_env="ALL"), {}) is None


@pytest.mark.parametrize(
    ("value", "said"), [(None, "is not set"), ("", "is not set"), ("a\nb", "can be no key")]
)
def test_a_key_that_is_not_there_is_said_by_its_variables_name(value, said):
    environment = {} if value is None else {"NAME": value}
    with pytest.raises(OperatorError, match=f"NAME.*{said}|in NAME {said}"):
        key_of(NodeSpec(name="a", url="http://a"), Access(key_env="NAME"), environment)


def test_standard_input():
    spec = NodeSpec(name="standard input", reads_stdin=True)
    (one,) = heard(spec, stdin=io.BytesIO(SGLANG_FINAL.encode()))
    assert one.logs[0].name == "standard input"
    with pytest.raises(OperatorError, match="no standard input"):
        heard(spec)


def test_a_key_in_place_of_a_variables_name_is_not_repeated():
    spec = NodeSpec(name="n", url="http://n:1")
    with pytest.raises(OperatorError) as raised:
        key_of(spec, Access(key_env="sk-s3cret"), {})
    assert "s3cret" not in str(raised.value)
