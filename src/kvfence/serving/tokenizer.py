"""Text to token ids and token ids to bytes, for one model.

Rules it keeps:
- A token stands for bytes. Text is made of bytes that were put together (`detokenizer`), so that a
  character cut over several tokens is never broken.
- Special tokens are ids with a meaning of their own. `encode(…)` reads them in text that the operator or
  the template wrote; `encode_literally(…)` never does.
- Nothing here imports torch or transformers: the router starts with the `tokenizers` library alone.

It renders no chat template (`chat`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from kvfence.engine import read_chat_template, read_tokenizer_config
from kvfence.protocol.errors import OperatorError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
# Decoders whose tokens are bytes independent of their neighbours, as `token_bytes` assumes.
_BYTE_LEVEL = {"ByteLevel"}
# Pre-tokenizers that cut a text and, "Removed" apart, drop nothing of it.
_CUTTERS = {None, "ByteLevel", "Digits", "Split"}
_SENTENCEPIECE = {"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace", "Sequence"}


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A special token as it is found in text. `lstrip` and `rstrip` swallow the space beside it."""

    text: str
    token: int
    lstrip: bool
    rstrip: bool


class TextTokenizer:
    """One model's tokenizer. Safe to use from several threads."""

    def __init__(
        self,
        tokenizer_json: str,
        *,
        chat_template: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Build it from the text of a tokenizer.json; `settings` are tokenizer_config.json's.

        Raises OperatorError when the library cannot read it, or its decoder is of an unknown kind.
        """
        try:
            # Two instances, since "read special tokens or not" is a switch of the instance.
            self._tokenizer: Tokenizer = Tokenizer.from_str(tokenizer_json)
            self._literal: Tokenizer = Tokenizer.from_str(tokenizer_json)
        except Exception as error:  # the library raises plain Exception
            raise OperatorError(f"the tokenizer cannot be read: {error}. Name another model.") from error
        for tokenizer in (self._tokenizer, self._literal):
            tokenizer.no_truncation()
            tokenizer.no_padding()
        self._literal.encode_special_tokens = True
        parts = json.loads(tokenizer_json)
        self._is_byte_level = _is_byte_level(parts.get("decoder"))
        added = self._tokenizer.get_added_tokens_decoder()
        self._added = {token: entry.content.encode() for token, entry in added.items()}
        self.specials = {
            entry.content: SpecialToken(entry.content, token, entry.lstrip, entry.rstrip)
            for token, entry in added.items()
            if entry.special and entry.content
        }
        self._special_ids = frozenset(special.token for special in self.specials.values())
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        self.vocab_size = 1 + max(vocabulary.values(), default=-1)
        keeps_bytes = self._is_byte_level and _keeps_bytes(parts)
        self._token_bytes_max = max(map(len, vocabulary), default=1) if keeps_bytes else None
        self.chat_template = chat_template
        self.settings: Mapping[str, object] = settings or {}

    @classmethod
    def from_folder(cls, folder: Path) -> "TextTokenizer":
        """Load the tokenizer of a model in HF layout, with its chat template where it has one."""
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise OperatorError(
                f"{folder} has no tokenizer.json, so no text can be served. Convert it first."
            )
        settings = read_tokenizer_config(folder)
        return cls(
            file.read_text(encoding="utf-8"),
            chat_template=read_chat_template(folder, settings),
            settings=settings,
        )

    def encode(self, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
        """Return the ids of `text`; special tokens written in it count as such."""
        return _encode(self._tokenizer, text, add_special_tokens=add_special_tokens)

    def encode_literally(self, text: str) -> tuple[int, ...]:
        """Return the ids of `text` with nothing in it read as a special token."""
        return _encode(self._literal, text, add_special_tokens=False)

    def tokens_min(self, text: str) -> int:
        """Return how many tokens `text` has at the least, without encoding it.

        A lower bound, so that a text that can never fit need not be encoded; 0 where none is known.
        """
        return 0 if self._token_bytes_max is None else -(-len(text.encode()) // self._token_bytes_max)

    def is_special(self, token: int) -> bool:
        """Whether the token has no text of its own."""
        return token in self._special_ids

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes that a token adds to the text: none for special and unknown tokens."""
        return b"" if self.is_special(token) else self.spelling(token)

    def spelling(self, token: int) -> bytes:
        """Return the bytes of a token, a special one spelled out; none for ids without a token."""
        added = self._added.get(token)
        if added is not None:
            return added
        piece = self._tokenizer.id_to_token(token)
        if piece is None:
            return b""
        if self._is_byte_level:
            return _bytes_of_byte_level(piece)
        match = _BYTE_TOKEN.match(piece)
        return bytes([int(match[1], 16)]) if match else piece.replace("\u2581", " ").encode()

    def token_name(self, token: int) -> str:
        """Return a token as logprobs show it: its text, or `bytes:\\x…` where it is no whole text."""
        raw = self.spelling(token)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


def _encode(tokenizer: Tokenizer, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
    # Of the library's ways to encode, only the batch lets other threads run meanwhile.
    (encoding,) = tokenizer.encode_batch_fast([text], add_special_tokens=add_special_tokens)
    return tuple(encoding.ids)


def _keeps_bytes(parts: Mapping[str, Any]) -> bool:
    """Whether every byte of a text ends up in some token, so that tokens can be bounded by bytes."""
    swallows = any(entry["lstrip"] or entry["rstrip"] for entry in parts.get("added_tokens") or ())
    cutters = parts.get("pre_tokenizer") or {}
    kinds = {
        (cutter.get("type"), cutter.get("behavior")) for cutter in cutters.get("pretokenizers", [cutters])
    }
    drops = any(kind not in _CUTTERS or behavior == "Removed" for kind, behavior in kinds)
    return not swallows and not drops and parts.get("normalizer") is None


def _is_byte_level(decoder: object) -> bool:
    kinds = set(_decoder_kinds(decoder))
    if kinds & _BYTE_LEVEL:
        return True
    if kinds and kinds <= _SENTENCEPIECE:
        return False
    raise OperatorError(
        f"the tokenizer's decoder is of a kind that is not supported: {sorted(kinds) or 'none'}. "
        "Supported are byte-level and SentencePiece-like tokenizers."
    )


def _decoder_kinds(decoder: object) -> list[str]:
    if not isinstance(decoder, dict):
        return []
    parts = decoder.get("decoders", [])
    return [str(decoder.get("type")), *(kind for part in parts for kind in _decoder_kinds(part))]


def _byte_level_alphabet() -> dict[str, int]:
    """Return the table of byte-level BPE (GPT-2's `bytes_to_unicode`), from character to byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_ALPHABET = _byte_level_alphabet()


def _bytes_of_byte_level(piece: str) -> bytes:
    # A piece outside the alphabet is literal text; the library's own decoder treats it the same way.
    try:
        return bytes(_ALPHABET[character] for character in piece)
    except KeyError:
        return piece.encode()
