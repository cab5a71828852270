"""What the API answers when it cannot serve: the right class of status, and what to do."""

import pytest

from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import End, EndReason, IntegrityReason, Refusal, RefusalCode
from kvfence.serving.errors import (
    ApiError,
    bad_field,
    context_too_long,
    error_of_end,
    internal_error,
    invalid_key,
    too_many,
)

SUCCESSES = {EndReason.STOP, EndReason.LENGTH}


def test_an_error_is_openais_object():
    error = ApiError(400, "No.", param="n", code="invalid_value", numbers={"limit_tokens": 5})
    assert error.payload() == {
        "error": {
            "message": "No.",
            "type": "invalid_request_error",
            "param": "n",
            "code": "invalid_value",
            "limit_tokens": 5,
        }
    }


@pytest.mark.parametrize(
    ("error", "headers"),
    [
        (ApiError(400, "No."), {}),
        (ApiError(503, "Later.", retry_after_s=5), {"retry-after": "5"}),
        (ApiError(413, "No.", closes=True), {"connection": "close"}),
        (invalid_key("No key."), {"www-authenticate": "Bearer"}),
        (too_many("Wait."), {"retry-after": "1"}),
    ],
)
def test_headers_say_what_the_client_may_do(error, headers):
    assert error.headers() == headers


def test_a_field_is_named_in_words_and_as_a_member():
    error = bad_field("n", "must be 1")
    assert (error.status, error.message, error.param) == (400, "`n` must be 1", "n")


def test_too_long_says_both_numbers_twice():
    error = context_too_long(9, 8, prompt_tokens=7, param="prompt")
    assert (error.status, error.code, error.numbers) == (
        400,
        "context_length_exceeded",
        {"needed_tokens": 9, "limit_tokens": 8},
    )
    assert all(words in error.message for words in ("at most 8 tokens", "at least 9", "7 of them"))


@pytest.mark.parametrize("reason", set(EndReason) - SUCCESSES)
def test_every_end_that_is_no_success_is_an_error_of_the_server(reason):
    error = error_of_end(End(reason))
    assert error.status in (500, 502, 503)
    assert error.code
    assert error.message.endswith(".")


@pytest.mark.parametrize("reason", SUCCESSES)
def test_a_success_is_no_error(reason):
    with pytest.raises(InvariantError, match="is a success"):
        error_of_end(End(reason))


@pytest.mark.parametrize("code", RefusalCode)
def test_a_refusal_that_can_never_fit_is_the_callers_and_every_other_may_be_tried_again(code):
    error = error_of_end(End(EndReason.REFUSED, refusal=Refusal(code)))
    if code is RefusalCode.CONTEXT_LENGTH:
        assert (error.status, error.retry_after_s) == (400, None)
    else:
        assert error.status == 503
        assert error.retry_after_s is not None
    assert error.code == code.value


def test_a_refusal_with_numbers_passes_them_on():
    refusal = Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=9, limit_tokens=8)
    assert error_of_end(End(EndReason.REFUSED, refusal=refusal)).numbers == {
        "needed_tokens": 9,
        "limit_tokens": 8,
    }


def test_an_integrity_failure_names_the_layer_that_spoke():
    error = error_of_end(End(EndReason.INTEGRITY, integrity=IntegrityReason.SEAL_TORN))
    assert (error.status, error.code) == (500, "integrity")
    assert "seal_torn" in error.message


def test_our_own_fault_says_nothing_of_its_reason():
    assert (internal_error().status, internal_error().code) == (500, "internal")
