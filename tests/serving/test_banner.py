"""What the operator sees, word for word; numbers that change between machines are given."""

import io
import shlex

from rich.console import Console
from tests.serving.fake_deployment import FakeModel

from kvfence.serving.banner import (
    BannerFacts,
    StartView,
    curl_line,
    largest_request_tokens,
    show_banner,
    step_words,
)
from kvfence.serving.config import ServeConfig
from kvfence.serving.plan import Machine, plan_nodes
from kvfence.serving.progress import Progress, Ready
from kvfence.serving.rundir import RunDir


def facts(tmp_path, config, **changes) -> BannerFacts:
    plan = plan_nodes(config, FakeModel(), RunDir(tmp_path, -1), Machine((0, 1), 16 << 30))
    ready = {
        "router": Ready(incarnation=1, url="http://127.0.0.1:8000"),
        "prefill-0": Ready(incarnation=1, pool_tokens=256, pool_bytes=2 << 20),
        "decode-0": Ready(incarnation=1, pool_tokens=120),
    }
    given = {
        "version": "0.0.0",
        "model_id": "fake-model",
        "has_chat_template": True,
        "url": "http://127.0.0.1:8000",
        "context_tokens": 128,
        "nodes": tuple((spec.config, ready[spec.name]) for spec in plan.nodes),
        "run_dir": "RUN",
    }
    return BannerFacts(**{**given, **changes})


def shown(tmp_path, config) -> str:
    output = io.StringIO()
    show_banner(Console(file=output, width=100, highlight=False), config, facts(tmp_path, config))
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


SAFE = """\
kvfence 0.0.0  serves fake-model
 node       pool tokens  context  pool/context  MiB  threads  cpus
 router                                                    1   any
 prefill-0          256      128          2.00    2        1     0
 decode-0           120      128          0.94             1     1
     fence  sealed
 transport  shm
   context  128 tokens; largest request 120 tokens
      logs  RUN
       URL  http://127.0.0.1:8000
       try  curl -s http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \
-d '{"model": "fake-model", "max_tokens": 48, "temperature": 0, "messages": [{"role": "user", "content": \
"What is the capital of France?"}]}'
Ctrl-C drains and stops; once more stops at once."""


def test_the_banner(tmp_path):
    assert shown(tmp_path, ServeConfig()) == SAFE


def test_an_unsafe_deployment_says_why(tmp_path):
    unsafe = ServeConfig(
        fence="off", unsafe_faults=("a/b",), unsafe_without=("seal",), i_understand_this_leaks_data=True
    )
    words = shown(tmp_path, unsafe)
    assert "UNSAFE" in words
    assert "The fence is off." in words
    assert "Fault: a/b" in words
    assert "Without: seal" in words
    assert "UNSAFE" not in shown(tmp_path, ServeConfig(fence="paranoid"))


def test_the_largest_request_is_bounded_by_every_pool(tmp_path):
    assert largest_request_tokens(facts(tmp_path, ServeConfig())) == 120
    assert largest_request_tokens(facts(tmp_path, ServeConfig(), context_tokens=64)) == 64


def test_the_curl_line_survives_a_shell(tmp_path):
    words = shlex.split(curl_line(ServeConfig(), facts(tmp_path, ServeConfig())))
    assert words[0] == "curl"
    assert words[-1].startswith('{"model": "fake-model"')
    plain = curl_line(ServeConfig(), facts(tmp_path, ServeConfig(), has_chat_template=False))
    assert "/v1/completions" in plain
    assert '"prompt"' in plain
    assert "Bearer" not in plain
    with_keys = ServeConfig(api_keys=tmp_path)
    assert "Bearer $KVFENCE_API_KEY" in curl_line(with_keys, facts(tmp_path, ServeConfig()))


def test_steps_are_lines_where_there_is_no_terminal():
    output = io.StringIO()
    view = StartView(Console(file=output, width=40))
    for words in ("starting", "starting", "ready"):
        view.step("decode-0", words)
    view.warn("it is late")
    view.close()
    assert output.getvalue() == "decode-0: starting\ndecode-0: ready\nwarning: it is late\n"


def test_steps_are_a_table_on_a_terminal():
    output = io.StringIO()
    view = StartView(Console(file=output, width=40, force_terminal=True))
    view.step("decode-0", "starting")
    view.step("router", "ready")
    view.line("a line")
    view.close()
    view.close()
    assert "decode-0" in output.getvalue()
    assert "a line" in output.getvalue()


def test_a_step_says_how_far_it_is_when_somebody_knows():
    assert step_words(Progress(step="loading")) == "loading"
    assert step_words(Progress(step="loading", done=1000, total=2000)) == "loading (1,000 of 2,000)"
    assert step_words(Ready(incarnation=1)) == "ready"
