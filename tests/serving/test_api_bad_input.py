"""Bad requests: each a clear 4xx that names the field; and random ones, which are never a 5xx."""

import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serving.api_fakes import MODEL, FakeFrontend, serving

from kvfence.serving.schemas import _CHAT, _COMPLETION
from kvfence.serving.schemas_fields import CONTROL_NAMES, UNSUPPORTED, WITHOUT_EFFECT

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
GOOD = {
    COMPLETIONS: {"model": MODEL, "prompt": "x"},
    CHAT: {"model": MODEL, "messages": [{"role": "user", "content": "x"}]},
}


@pytest.fixture(scope="module")
def http():
    with serving(FakeFrontend()) as url, httpx.Client(base_url=url) as client:
        yield client


def post(http, path, content, **headers):
    return http.post(path, content=content, headers={"content-type": "application/json"} | headers)


def error_of(response):
    error = response.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["message"]
    assert response.headers["x-request-id"]
    return error


# Field → value → what the error names. One good body with this one field changed.
BAD_FIELDS = [
    *[
        (path, name, value, name)
        for path in GOOD
        for name, values in {
            "model": [None, 5, "", "x" * 300],
            "n": [0, -1, 65, 10**30, 1.5, True, "1"],
            "max_tokens": [0, -1, 10**12, "5", 5.0, False],
            "temperature": [-0.1, 2.1, 10**400, "1", True, []],
            "top_p": [0, -1, 1.1, "x"],
            "top_k": [0, -1, 1.5, 10**100],
            "min_p": [-0.1, 1.1],
            "seed": [2**63, -(2**63) - 1, 0.5, "1"],
            "presence_penalty": [2.5, -2.5],
            "frequency_penalty": [2.5, "x"],
            "repetition_penalty": [0, -1, 11],
            "stream": ["true", 1],
            "ignore_eos": [1],
            "stop": [[""], "", 5, ["a"] * 5, [["a"]], "x" * 300],
            "stop_token_ids": [[-1], [10**6], "x", [1.5], [True], [1] * 65],
            "logit_bias": [{"x": 1}, {"-1": 1}, {"999999": 1}, {"5": 101}, {"5": "x"}, [], {"٣": 1}],
            "stream_options": [{"include_usage": True}, 5],
        }.items()
        for value in values
    ],
    (COMPLETIONS, "prompt", None, "prompt"),
    (COMPLETIONS, "prompt", "", "prompt"),
    (COMPLETIONS, "prompt", [], "prompt"),
    (COMPLETIONS, "prompt", [[]], "prompt[0]"),
    (COMPLETIONS, "prompt", {}, "prompt"),
    (COMPLETIONS, "prompt", [1, "x"], "prompt[1]"),
    (COMPLETIONS, "prompt", ["x", 1], "prompt[1]"),
    (COMPLETIONS, "prompt", [[1], "x"], "prompt[1]"),
    (COMPLETIONS, "prompt", [1.5], "prompt[0]"),
    (COMPLETIONS, "prompt", [True], "prompt[0]"),
    (COMPLETIONS, "prompt", [None], "prompt[0]"),
    (COMPLETIONS, "prompt", [-1], "prompt[0]"),
    (COMPLETIONS, "prompt", [49152], "prompt[0]"),
    (COMPLETIONS, "prompt", [10**30], "prompt[0]"),
    (COMPLETIONS, "prompt", ["x"] * 65, "prompt"),
    (COMPLETIONS, "logprobs", 21, "logprobs"),
    (COMPLETIONS, "logprobs", True, "logprobs"),
    (CHAT, "logprobs", 1, "logprobs"),
    (CHAT, "top_logprobs", 3, "top_logprobs"),
    (CHAT, "top_logprobs", -1, "top_logprobs"),
    (CHAT, "max_completion_tokens", 0, "max_completion_tokens"),
    (CHAT, "prompt", "x", "prompt"),
    (COMPLETIONS, "messages", [], "messages"),
    (CHAT, "messages", None, "messages"),
    (CHAT, "messages", [], "messages"),
    (CHAT, "messages", "x", "messages"),
    (CHAT, "messages", [5], "messages[0]"),
    (CHAT, "messages", [{}], "messages[0].role"),
    (CHAT, "messages", [{"role": "user"}], "messages[0].content"),
    (CHAT, "messages", [{"role": "user", "content": None}], "messages[0].content"),
    (CHAT, "messages", [{"role": "user", "content": 5}], "messages[0].content"),
    (CHAT, "messages", [{"role": "user", "content": {}}], "messages[0].content"),
    (CHAT, "messages", [{"role": "tool", "content": "x"}], "messages[0].role"),
    (CHAT, "messages", [{"role": "root", "content": "x"}], "messages[0].role"),
    (CHAT, "messages", [{"role": "user", "content": "x", "name": "B"}], "messages[0].name"),
    (CHAT, "messages", [{"role": "user", "content": "x", "tool_calls": [{}]}], "messages[0].tool_calls"),
    (CHAT, "messages", [{"role": "user", "content": "x", "contnet": "x"}], "messages[0].contnet"),
    (CHAT, "messages", [{"role": "user", "content": "x", "lease": 1}], "messages[0].lease"),
    (CHAT, "messages", [{"role": "user", "content": [5]}], "messages[0].content[0]"),
    (CHAT, "messages", [{"role": "user", "content": [{}]}], "messages[0].content[0].type"),
    (CHAT, "messages", [{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].type"),
    (CHAT, "messages", [{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
]


@pytest.mark.parametrize(("path", "name", "value", "param"), BAD_FIELDS)
def test_bad_field_is_named(http, path, name, value, param):
    response = post(http, path, json.dumps(GOOD[path] | {name: value}))
    error = error_of(response)
    assert response.status_code == 400
    assert error["param"] == param or error["param"].startswith((f"{param}.", f"{param}["))
    assert error["param"] in error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", list(GOOD))
def test_the_bodies_that_the_bad_ones_are_made_of_are_good(http, path):
    assert post(http, path, json.dumps(GOOD[path])).status_code == 200
    assert post(http, path, json.dumps(GOOD[path] | dict.fromkeys(UNSUPPORTED))).status_code == 200
    neutral = {name: values[0] for name, values in UNSUPPORTED.items() if values}
    assert post(http, path, json.dumps(GOOD[path] | neutral)).status_code == 200
    without_effect = {"user": "u", "metadata": {"a": "b"}, "store": True, "safety_identifier": "s"}
    assert set(without_effect) == WITHOUT_EFFECT
    assert post(http, path, json.dumps(GOOD[path] | without_effect)).status_code == 200


@pytest.mark.parametrize("path", list(GOOD))
@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_unsupported_field_is_named(http, path, name):
    error = error_of(post(http, path, json.dumps(GOOD[path] | {name: {"some": "thing"}})))
    assert (error["param"], error["code"]) == (name, "unsupported_parameter")


CONTROL = [
    *sorted(CONTROL_NAMES),
    *("bootstrap_host", "bootstrap_port", "bootstrap_room", "transfer_id", "transfer_backend", "page"),
    *("pages", "page_table", "lease", "lease_id", "block_table", "block_ids", "disagg_prefill_dp_rank"),
    *(
        "disaggregated_params",
        "do_remote_prefill",
        "remote_engine_id",
        "kv_cache",
        "Bootstrap_Host",
        "cache-salt",
    ),
]


@pytest.mark.parametrize("path", list(GOOD))
@pytest.mark.parametrize("name", CONTROL)
def test_control_field_is_refused_as_such(http, path, name):
    for value in (1, None, "x", {}):
        error = error_of(post(http, path, json.dumps(GOOD[path] | {name: value})))
        assert (error["param"], error["code"]) == (name, "control_field")


def test_no_served_field_is_a_control_or_unsupported_field():
    served = _COMPLETION | _CHAT | WITHOUT_EFFECT
    assert not served & (set(UNSUPPORTED) | CONTROL_NAMES)


def test_unknown_field_has_a_suggestion(http):
    error = error_of(post(http, COMPLETIONS, json.dumps(GOOD[COMPLETIONS] | {"temprature": 1})))
    assert (error["param"], error["code"]) == ("temprature", "unknown_parameter")
    assert "Did you mean `temperature`?" in error["message"]
    far = error_of(post(http, COMPLETIONS, json.dumps(GOOD[COMPLETIONS] | {"zzz": 1})))
    assert "Did you mean" not in far["message"]


def test_two_names_of_one_thing(http):
    body = GOOD[CHAT] | {"max_tokens": 5, "max_completion_tokens": 6}
    assert error_of(post(http, CHAT, json.dumps(body)))["param"] == "max_tokens"
    assert post(http, CHAT, json.dumps(body | {"max_completion_tokens": 5})).status_code == 200


def test_too_many_choices_in_all(http):
    body = GOOD[COMPLETIONS] | {"prompt": ["x"] * 33, "n": 2}
    assert error_of(post(http, COMPLETIONS, json.dumps(body)))["param"] == "n"


# Body → code → what its message has to say.
BAD_JSON = [
    (b"", "invalid_json", "line 1, column 1"),
    (b"{", "invalid_json", "line 1, column 2"),
    (b'{"model": "x",\n "prompt" "y"}', "invalid_json", "line 2, column 11"),
    (b'{"a": 1} x', "invalid_json", "Extra data"),
    (b"[]", "invalid_json", "not a list"),
    (b"null", "invalid_json", "not null"),
    (b'"x"', "invalid_json", "not a string"),
    (b"5", "invalid_json", "not 5"),
    (b"NaN", "invalid_json", "NaN"),
    (b'{"temperature": NaN}', "invalid_json", "NaN"),
    (b'{"temperature": -Infinity}', "invalid_json", "-Infinity"),
    (b'{"model": "m", "temperature": 1e999}', "invalid_value", "`temperature` must be at least 0"),
    (b'{"model": "m", "temperature": -1e999}', "invalid_value", "`temperature` must be at least 0"),
    (b'{"model": "m", "temperature": ' + b"9" * 5000 + b"}", "invalid_value", "`temperature` must be"),
    (b'{"model": "m", "temperature": -' + b"9" * 5000 + b"}", "invalid_value", "`temperature` must be"),
    (
        b'{"model": "m", "seed": ' + b"9" * 5000 + b"}",
        "invalid_type",
        "`seed` must be an integer, not a number too",
    ),
    (b'{"prompt": "\xff"}', "invalid_json", "byte 12 is not valid UTF-8"),
    (b'{"prompt": "\xed\xa0\x80"}', "invalid_json", "UTF-8"),
    (b"\xef\xbb\xbf{}", "invalid_json", "BOM"),
    (b'{"prompt": "\x00"}', "invalid_json", "control character"),
    (b"[" * 100_000, "invalid_json", "nested"),
    (b'{"a":' * 100_000, "invalid_json", "nested"),
    (b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_json", "nested"),
    (b'{"model": "x", "model": "y"}', "duplicate_field", "`model` is there twice"),
    (b'{"messages": [{"role": "user", "role": "system"}]}', "duplicate_field", "`role`"),
    (b'{"prompt": "x", "model": "m", "\\ud800": 1}', "unknown_parameter", "a string of 1 characters"),
    (b'{"prompt": "x", "model": "m", "a\\nb": 1}', "unknown_parameter", "a string of 3 characters"),
    (b'{"prompt": "x", "model": "m", "' + b"k" * 100_000 + b'": 1}', "unknown_parameter", "k…"),
    (b'{"prompt": "x \\ud800 y", "model": "m"}', "invalid_value", "half a surrogate pair at character 2"),
    (b'{"prompt": "x", "model": "\\udc00"}', "invalid_value", "surrogate"),
    (b'{"prompt": "x", "model": "m", "stop": "\\udc00"}', "invalid_value", "surrogate"),
]


@pytest.mark.parametrize(("body", "code", "says"), BAD_JSON)
def test_bad_json_says_where(http, body, code, says):
    response = post(http, COMPLETIONS, body)
    assert response.status_code == 400
    error = error_of(response)
    assert error["code"] == code
    assert says in error["message"]
    assert len(error["message"]) < 500


def test_nul_in_a_prompt_is_text(http):
    assert post(http, COMPLETIONS, json.dumps(GOOD[COMPLETIONS] | {"prompt": "a\0b"})).status_code == 200


def test_unknown_model(http):
    response = post(http, CHAT, json.dumps(GOOD[CHAT] | {"model": "gpt-4"}))
    assert (response.status_code, error_of(response)["code"]) == (404, "model_not_found")
    assert MODEL in error_of(response)["message"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ('Application/JSON; charset="UTF-8"', 200),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
def test_content_type(http, kind, status):
    response = http.post(COMPLETIONS, content=json.dumps(GOOD[COMPLETIONS]), headers={"content-type": kind})
    assert response.status_code == status
    if status != 200:
        assert error_of(response)["param"] == "Content-Type"


def test_no_content_type_and_content_encoding(http):
    request = http.build_request("POST", COMPLETIONS, content=json.dumps(GOOD[COMPLETIONS]))
    assert "content-type" not in request.headers
    assert http.send(request).status_code == 415
    response = post(http, COMPLETIONS, b"x", **{"content-encoding": "gzip"})
    assert (response.status_code, error_of(response)["param"]) == (415, "Content-Encoding")


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/completions", "/v1/completions/", "/docs", "/v1/models/%ff"]
)
def test_unknown_path(http, path):
    response = http.get(path)
    assert response.status_code == 404
    assert error_of(response)["code"] in {"not_found", "model_not_found"}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", COMPLETIONS), ("PUT", CHAT), ("DELETE", "/v1/models"), ("POST", "/health"), ("OPTIONS", CHAT)],
)
def test_wrong_method(http, method, path):
    response = http.request(method, path)
    assert (response.status_code, error_of(response)["code"]) == (405, "method_not_allowed")
    assert response.headers["allow"]


# ---------------------------------------------------------------- random bodies
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(sorted(_COMPLETION | _CHAT | set(UNSUPPORTED) | {"rid"})) | st.text(max_size=10)
FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@FUZZ
@given(path=st.sampled_from(list(GOOD)), changes=st.dictionaries(NAMES, VALUES, max_size=3))
def test_random_fields_are_never_a_5xx(http, path, changes):
    response = post(http, path, json.dumps(GOOD[path] | changes))
    assert response.status_code in {200, 400, 404}
    if response.status_code != 200:
        error_of(response)


@FUZZ
@given(path=st.sampled_from(list(GOOD)), body=st.binary(max_size=60))
def test_random_bytes_are_a_400(http, path, body):
    assert post(http, path, body).status_code == 400


@FUZZ
@given(path=st.sampled_from(list(GOOD)), where=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_one_changed_byte_is_never_a_5xx(http, path, where, byte):
    body = bytearray(
        json.dumps(GOOD[path] | {"stop": ["a"], "logit_bias": {"5": 1}, "max_tokens": 5}).encode()
    )
    body[where % len(body)] = byte
    assert post(http, path, bytes(body)).status_code in {200, 400, 404}
