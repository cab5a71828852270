"""What is kept of a reply that holds somebody else's words: a hit in production is a data breach.

Rules it keeps:
- By default nothing of a text is kept: only which of our own markers came back, how much of it, where,
  lengths, times, and a keyed hash. The key is drawn for the run and dropped with it.
- `full` keeps the texts, encrypted to an age recipient, so that whoever runs the check cannot read them; each
  file says until when it may be kept. Without a recipient there is no `full`.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from kvfence.check.reply import Reply
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.protocol.errors import OperatorError

ADVICE = (
    "Contain: take the server (or its pair) out of service or restart it: a drained queue cleans no page.",
    "Preserve: keep its logs, its metrics and its settings, and this run's JSON lines; note the request id.",
    "Tell: security and privacy; other answers of the same days may hold customers' text.",
)


def keyed_hash(text: str, key: bytes) -> str:
    """32 hex digits of keyed BLAKE2b: equal texts show as equal, and nothing else of them shows."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).hexdigest()


def facts_of(seen: ForeignMarkerSeen, key: bytes) -> dict[str, str | int | float | bool | None]:
    """What a finding may say of a reply with a foreign marker in it."""
    hit, reply = seen.hits[0], seen.reply
    text = _all_text(reply)
    facts: dict[str, str | int | float | bool | None] = {
        "request": seen.request,
        "tenant": seen.tenant,
        "marker_owner": hit.marker.owner,
        "marker_share": round(hit.share, 3),
        "bits_left": round(hit.bits, 1),
        "place": hit.place,
        "foreign_markers": len({hit.marker.text for hit in seen.hits}),
        "text_characters": len(text),
        "text_keyed_hash": keyed_hash(text, key),
        "status": reply.status,
        "finish": reply.told_finish,
        "prompt_tokens": reply.usage.prompt_tokens,
        "expected_prompt_tokens": seen.ask.prompt_tokens,
        "ttft_s": None if reply.ttft_s is None else round(reply.ttft_s, 3),
        "total_s": round(reply.total_s, 3),
    }
    headers = {name.lower(): value for name, value in reply.headers}
    facts["server_request_id"] = headers.get("x-request-id")
    return {name: value for name, value in facts.items() if value is not None}


def _all_text(reply: Reply) -> str:
    return "\n".join(text.text for text in reply.texts if text.place != "header")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vault:
    """Where full texts go. `recipient` is an age public key (age1…); files are <run>-<request>.age, 0600."""

    folder: Path
    recipient: str
    keep_until: date

    def keep(self, run: str, seen: ForeignMarkerSeen) -> Path:
        """Encrypt one reply's texts. Raises OperatorError when that cannot be done."""
        content = {
            "run": run,
            "request": seen.request,
            "keep_until": self.keep_until.isoformat(),
            "texts": [{"place": text.place, "text": text.text} for text in seen.reply.texts],
        }
        sealed = _encrypted(json.dumps(content, ensure_ascii=False).encode(), self.recipient)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{run}-{seen.request}.age"
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(sealed)
        return path


def check_recipient(recipient: str) -> None:
    """Raise OperatorError unless texts can be encrypted to this recipient: asked before a run starts."""
    _encrypted(b"", recipient)


def _encrypted(plain: bytes, recipient: str) -> bytes:
    try:
        import pyrage  # noqa: PLC0415 -- an extra, wanted only here
    except ModuleNotFoundError as error:
        raise OperatorError(
            "--evidence full encrypts what it keeps, and needs pyrage: pip install 'kvfence[evidence]'"
        ) from error
    try:
        return bytes(pyrage.encrypt(plain, [pyrage.x25519.Recipient.from_str(recipient)]))
    except pyrage.RecipientError as error:
        raise OperatorError(
            f"{recipient!r} is no age recipient ({error}): give the public key that age-keygen prints (age1…)"
        ) from error
