"""Errors in the forms of OpenAI, vLLM and SGLang."""

from tests.check.fake.app import json_response

STATUS_OF = {"context": 400, "body": 400, "field": 400, "busy": 429, "internal": 500}


def too_long(dialect, limit, size):
    """The sentence about a prompt that does not fit, as this dialect says it."""
    if dialect == "vllm":
        return (
            f"This model's maximum context length is {limit} tokens. However, your prompt contains {size} "
            "input tokens. Please reduce the length of the input prompt."
        )
    if dialect == "sglang":
        return f"Input length ({size} tokens) exceeds the maximum allowed length ({limit} tokens). Use a shorter input or enable --allow-auto-truncate."
    return f"This model's maximum context length is {limit} tokens. However, your messages resulted in {size} tokens."


def error_body(dialect, message, *, status=400, code=None, param=None):
    """The JSON of an error."""
    if dialect == "sglang":
        return {
            "object": "error",
            "message": message,
            "type": "BadRequestError",
            "param": param,
            "code": status,
        }
    if dialect == "vllm":
        kind = "InternalServerError" if status >= 500 else "BadRequestError"
        return {"error": {"message": message, "type": kind, "param": param, "code": status}}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_response(dialect, message, *, status=400, code=None, param=None, **headers):
    """A response that says it."""
    return json_response(
        error_body(dialect, message, status=status, code=code, param=param), status, **headers
    )


def refusal_response(setup, refused):
    """What the engine's RefusedError looks like outside."""
    if refused.kind == "context":
        message = too_long(setup.dialect, setup.limit_tokens, refused.message)
        return error_response(setup.dialect, message, code="context_length_exceeded", param="messages")
    headers = {"retry_after": "1"} if refused.status == 429 else {}
    return error_response(setup.dialect, refused.message, status=refused.status, **headers)
