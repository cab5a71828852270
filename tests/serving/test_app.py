"""What only reads, and what all answers have in common."""

import asyncio
import json
from collections import Counter

import httpx
import pytest
import structlog
from tests.serving.api_fakes import LIMIT_TOKENS, MODEL, FakeFrontend, serving, tokenizer

from kvfence.serving.api import ApiSettings
from kvfence.serving.app import build_app
from kvfence.serving.streaming import NoObserver
from kvfence.serving.tenants import Tenants


class Recorder(NoObserver):
    def __init__(self):
        self.seen = Counter()
        self.requests = []

    def on_request(self, *, prompt_tokens, choices):
        self.requests.append((prompt_tokens, choices))

    def on_first_token(self, seconds):
        assert seconds >= 0
        self.seen["first"] += 1

    def on_token(self, seconds):
        self.seen["token"] += 1

    def on_end(self, reason, *, seconds, completion_tokens):
        self.seen[reason] += 1

    def on_refusal(self, code):
        self.seen[code] += 1


def ask(*requests, frontend=None, settings=None, **options):
    """Answers of the application, called directly."""

    async def main():
        app = build_app(
            frontend or FakeFrontend(), tokenizer(), settings or ApiSettings(model_id=MODEL), **options
        )
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            return [await http.request(method, path, **more) for method, path, more in requests]

    answers = asyncio.run(main())
    return answers[0] if len(answers) == 1 else answers


def test_models_advertise_the_true_limit():
    for limit in (256, None):
        answer = ask(("GET", "/v1/models", {}), frontend=FakeFrontend(limit_tokens=limit))
        assert answer.json()["data"][0]["max_model_len"] == limit


def test_health():
    assert ask(("GET", "/health", {})).json() == {"status": "ok"}
    starting = ask(("GET", "/health", {}), frontend=FakeFrontend(limit_tokens=None))
    assert (starting.status_code, starting.json()) == (503, {"status": "unavailable"})


@pytest.mark.parametrize("path", ["/metrics", "/server_info"])
def test_server_state(path):
    options = {"metrics": lambda: b"figures 1\n", "server_info": lambda: {"pool_tokens": 5}}
    answer = ask(("GET", path, {}), **options)
    assert answer.text in {"figures 1\n", '{"pool_tokens":5}'}
    assert ask(("GET", path, {})).status_code == 404


@pytest.mark.parametrize("path", ["/metrics", "/server_info"])
def test_server_state_beyond_loopback_needs_the_admin_key(path):
    options = {
        "metrics": lambda: b"",
        "server_info": dict,
        "settings": ApiSettings(model_id=MODEL, admin_only_state=True),
        "tenants": Tenants(admin_key="root"),
    }
    none, other, admin = ask(
        ("GET", path, {}),
        ("GET", path, {"headers": {"authorization": "Bearer other"}}),
        ("GET", path, {"headers": {"authorization": "Bearer root"}}),
        **options,
    )
    assert (none.status_code, other.status_code, admin.status_code) == (403, 403, 200)
    assert none.json()["error"]["code"] == "admin_key_required"


def test_a_request_id_is_on_every_answer():
    for answer in ask(("GET", "/health", {}), ("GET", "/none", {}), ("POST", "/v1/completions", {})):
        assert answer.headers["x-request-id"].startswith("req-")


def test_unforeseen_failure_is_a_500_with_its_reason_in_the_log_alone():
    class Broken(FakeFrontend):
        def submit(self, jobs):
            raise ZeroDivisionError("the secret reason")

    observer = Recorder()
    with structlog.testing.capture_logs() as logs:
        answer = ask(
            ("POST", "/v1/completions", {"json": {"model": MODEL, "prompt": "x"}}),
            frontend=Broken(),
            observer=observer,
        )
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "secret" not in answer.text
    assert logs[0]["event"] == "request failed"
    assert observer.seen == {"internal": 1}


def test_observer_hears_of_everything():
    observer = Recorder()
    body = {"model": MODEL, "prompt": [1, 2, 3], "n": 2}
    ask(
        ("POST", "/v1/completions", {"json": body}),
        ("POST", "/v1/completions", {"json": body | {"n": 0}}),
        observer=observer,
    )
    assert observer.requests == [(3, 2)]
    assert observer.seen == {"first": 2, "token": 4, "stop": 2, "invalid_value": 1}


def test_vocabulary_is_the_smaller_of_model_and_tokenizer():
    for vocab_size, status in ((100, 400), (101, 200), (None, 200), (10**6, 200)):
        settings = ApiSettings(model_id=MODEL, vocab_size=vocab_size)
        answer = ask(
            ("POST", "/v1/completions", {"json": {"model": MODEL, "prompt": [100]}}), settings=settings
        )
        assert answer.status_code == status


def test_text_beyond_the_models_vocabulary_is_refused():
    settings = ApiSettings(model_id=MODEL, vocab_size=100)
    answer = ask(
        ("POST", "/v1/completions", {"json": {"model": MODEL, "prompt": " hello there"}}), settings=settings
    )
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "prompt")


def test_long_texts_are_tokenised_on_a_thread():
    frontend = FakeFrontend(limit_tokens=1 << 20)
    text = "word " * 2000
    ask(
        ("POST", "/v1/completions", {"json": {"model": MODEL, "prompt": text}}),
        (
            "POST",
            "/v1/chat/completions",
            {"json": {"model": MODEL, "messages": [{"role": "user", "content": text}]}},
        ),
        frontend=frontend,
    )
    assert [len(job.tokens) > 2000 for job in frontend.jobs] == [True, True]


def test_text_that_is_too_long_in_any_case_is_refused_without_being_tokenised(monkeypatch):
    def encode(*args, **options):
        raise AssertionError("tokenised")

    monkeypatch.setattr("kvfence.serving.tokenizer._encode", encode)
    text = "1" * (3 << 20)
    for answer in ask(
        ("POST", "/v1/completions", {"json": {"model": MODEL, "prompt": text}}),
        ("POST", "/v1/completions", {"json": {"model": MODEL, "prompt": text, "max_tokens": 100}}),
        (
            "POST",
            "/v1/chat/completions",
            {"json": {"model": MODEL, "messages": [{"role": "user", "content": text}]}},
        ),
    ):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "context_length_exceeded")
        assert error["needed_tokens"] > error["limit_tokens"] == LIMIT_TOKENS


def test_limits_of_a_tenant_over_http():
    never_fits = {"model": MODEL, "prompt": "x", "n": 5, "max_tokens": 250}
    answer = ask(("POST", "/v1/completions", {"json": never_fits}))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "tenant_limit_exceeded")


def test_nothing_is_global():
    """Two applications at once, each with its own frontend."""
    one, two = FakeFrontend(), FakeFrontend()
    with serving(one) as first, serving(two) as second:
        for url in (first, second, second):
            assert (
                httpx.post(f"{url}/v1/completions", json={"model": MODEL, "prompt": "x"}).status_code == 200
            )
    assert (len(one.jobs), len(two.jobs)) == (1, 2)


def test_answer_without_logprobs_where_they_were_asked_for_is_our_fault():
    def script(job):
        from tests.serving.api_fakes import says

        return [
            type(delta)(delta.token, delta.position) if hasattr(delta, "token") else delta
            for delta in says(" fine")(job)
        ]

    with structlog.testing.capture_logs():
        answer = ask(
            ("POST", "/v1/completions", {"json": {"model": MODEL, "prompt": "x", "logprobs": 1}}),
            frontend=FakeFrontend(script=script),
        )
    assert answer.status_code == 500
    assert json.loads(answer.content)["error"]["type"] == "server_error"
