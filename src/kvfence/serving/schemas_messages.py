"""Messages of a chat: role and text, and nothing else that would be dropped silently.

Rules it keeps:
- Content is a string or a list of text parts, which are put together without anything between them.
- Members that clients send back as they got them (`refusal: null`) are taken while they are empty.
- Roles and members that are known elsewhere (`tool`, `name`) are refused by name.
"""

from kvfence.serving.chat import Message
from kvfence.serving.errors import bad_field
from kvfence.serving.schemas_fields import check_fields
from kvfence.serving.schemas_readers import Fields, describe, list_of, short_text, table, text

PARTS_MAX = 1024

_ROLES = ("system", "user", "assistant")
# Members of a message that clients send back to us as they got them: they may be there, and empty.
_EMPTY_MEMBERS = ("annotations", "audio", "function_call", "refusal", "tool_calls")


def read_message(path: str, value: object) -> Message:
    """Read one message. Raises ApiError (400)."""
    body = table(path, value, 32)
    asked = {
        name: entry for name, entry in body.items() if name not in _EMPTY_MEMBERS or entry not in (None, [])
    }
    if "name" in asked or any(name in asked for name in _EMPTY_MEMBERS):
        name = next(name for name in asked if name == "name" or name in _EMPTY_MEMBERS)
        raise bad_field(
            f"{path}.{name}", "is not supported by this server. Leave it out.", code="unsupported_parameter"
        )
    check_fields(asked, {"role", "content"}, path=f"{path}.")
    fields = Fields(asked, f"{path}.")
    role = fields.require("role", short_text(32))
    if role not in _ROLES:
        raise bad_field(f"{path}.role", f"must be one of {', '.join(_ROLES)}; no other role is supported")
    return Message(role, fields.require("content", _content))


def _content(path: str, value: object) -> str:
    if isinstance(value, str):
        return text(path, value)
    if not isinstance(value, list):
        raise bad_field(
            path, f"must be a string or a list of text parts, not {describe(value)}", code="invalid_type"
        )
    return "".join(list_of(_part, PARTS_MAX)(path, value))


def _part(path: str, value: object) -> str:
    body = table(path, value, 8)
    fields = Fields(body, f"{path}.")
    kind = fields.require("type", short_text(32))
    if kind != "text":
        raise bad_field(f"{path}.type", "must be `text`; other parts are not supported by this server")
    check_fields(body, {"type", "text"}, path=f"{path}.")
    return fields.require("text", text)
