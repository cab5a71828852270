"""The body of a request, from the connection to a JSON object, with every bound kept on the way.

Rules it keeps:
- A body that says it is too large is refused before a byte of it is read; one that does not say is refused
  as soon as it is. A body that does not arrive in time is refused.
- JSON is read strictly: UTF-8, one object, no duplicate names, no NaN or Infinity, no deeper nested than
  Python reads without recursion errors. Numbers too large for any field are left for the fields to refuse.
- An error says where: line and column, or the field.
"""

import asyncio
import json
import math
from typing import NoReturn

from starlette.types import Receive, Scope

from kvfence.serving.errors import ApiError, bad_field
from kvfence.serving.schemas_readers import describe

BODY_TIMEOUT_S = 60.0
_DIGITS_MAX = 400  # no number of this API is longer, and Python reads 4,300 at most


class ClientGone(Exception):  # noqa: N818  (a fact about the connection, not a fault)
    """The client closed the connection: nobody is left to answer."""


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """Return the values of a header, in order. `name` is in lower case."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


async def read_body(scope: Scope, receive: Receive, *, bytes_max: int, timeout_s: float) -> bytes:
    """Read the whole body. Raises ApiError (408, 413) or ClientGone."""
    lengths = headers_of(scope, b"content-length")
    if any(not length.isdecimal() or int(length[:20]) > bytes_max for length in lengths):
        raise _too_large(bytes_max)
    try:
        async with asyncio.timeout(timeout_s):
            return await _read_bounded(receive, bytes_max)
    except TimeoutError as error:
        raise ApiError(
            408, f"The body did not arrive within {timeout_s:g} s.", code="request_timeout", closes=True
        ) from error


async def _read_bounded(receive: Receive, bytes_max: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > bytes_max:
            raise _too_large(bytes_max)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _too_large(bytes_max: int) -> ApiError:
    return ApiError(413, f"The body may have at most {bytes_max} bytes.", code="body_too_large", closes=True)


def check_content_type(scope: Scope) -> None:
    """Raise ApiError (415) unless the body is said to be JSON, in UTF-8, without a content encoding."""
    kinds = headers_of(scope, b"content-type")
    kind, _, parameters = (kinds[0] if len(kinds) == 1 else "").partition(";")
    charset = parameters.strip().lower().replace('"', "").replace(" ", "")
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise ApiError(
            415,
            "Send the body as JSON, with `Content-Type: application/json`.",
            param="Content-Type",
            code="unsupported_media_type",
        )
    if any(encoding.strip().lower() != "identity" for encoding in headers_of(scope, b"content-encoding")):
        raise ApiError(
            415,
            "Send the body as it is; no content encoding is supported.",
            param="Content-Encoding",
            code="unsupported_media_type",
        )


def parse_object(body: bytes) -> dict[str, object]:
    """Return the JSON object in `body`. Raises ApiError (400) that says where it is none."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_json(f"byte {error.start} is not valid UTF-8") from error
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        raise _not_json(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise _not_json("it is nested too deeply") from error
    if not isinstance(value, dict):
        raise ApiError(400, f"The body must be a JSON object, not {describe(value)}.", code="invalid_json")
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            shown = name if name.isprintable() and len(name) <= 100 else describe(name)
            raise bad_field(shown, "is there twice; send it once", code="duplicate_field")
        found[name] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _not_json(f"{name} is no JSON number")


def _integer(digits: str) -> int | float:
    # Infinity is in no field's range, so that the field's own reader refuses it, by name.
    return int(digits) if len(digits) <= _DIGITS_MAX else math.copysign(math.inf, -(digits[0] == "-") or 1)


def _not_json(why: str) -> ApiError:
    return ApiError(400, f"The body is not valid JSON: {why}.", code="invalid_json")
