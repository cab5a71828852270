"""Chat messages to token ids, by the model's own chat template.

Rules it keeps:
- A special token counts only where the template wrote it. Before rendering, each special token spelled in
  a message is broken by a guard, a character that occurs in no message; afterwards the special tokens
  still whole are the template's, and the guards are taken out. Where the plain text holds no others, it is
  encoded at once, exactly as the model's authors do; else piece by piece, message text literally.
- Templates come with the model, so they run in Jinja's immutable sandbox.
- What a template refuses (an order of roles, a role it does not know) is the caller's 400.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from kvfence.protocol.errors import OperatorError
from kvfence.serving.errors import ApiError, bad_field
from kvfence.serving.tokenizer import SpecialToken, TextTokenizer

# Private-use characters; with as many candidates as this, a message that holds all of them is an attack.
_GUARDS = tuple(chr(0xF8F0 - index) for index in range(64))


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: str
    content: str


class _Refused(Exception):  # noqa: N818  (what a template raises is its verdict, not our error)
    """The template called `raise_exception`."""


class _Generation(jinja2.ext.Extension):
    """Templates may mark the assistant's words with `{% generation %}`; for serving the mark is nothing."""

    tags = {"generation"}  # noqa: RUF012  (Jinja reads it as a plain set)

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        """Return the block's body in place of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """The chat template of one model."""

    def __init__(self, tokenizer: TextTokenizer, *, now: Callable[[], datetime] = datetime.now) -> None:
        """Compile the tokenizer's template. Raises OperatorError when it cannot be read."""
        self._tokenizer = tokenizer
        self._specials = _pattern(tokenizer)
        self._variables = _special_variables(tokenizer)
        self._template: jinja2.Template | None = None
        if tokenizer.chat_template is not None:
            try:
                self._template = _environment(now).from_string(tokenizer.chat_template)
            except jinja2.TemplateError as error:
                raise OperatorError(f"the model's chat template cannot be read: {error}") from error

    def encode(
        self, messages: Sequence[Message], *, check: Callable[[str], None] = lambda _: None
    ) -> tuple[int, ...]:
        """Return the ids of the conversation, up to where the assistant is to speak.

        `check` is called with the rendered text, and may raise to spare its encoding.
        Raises ApiError (400) when the model has no template, or the template refuses the messages.
        """
        guard = _choose_guard(messages)
        guarded = [Message(message.role, self._break(message.content, guard)) for message in messages]
        rendered = self._render(guarded)
        plain = rendered.replace(guard, "")
        check(plain)
        ours = self._find(rendered)
        if _places(ours, rendered, guard) == _places(self._find(plain), plain, guard):
            ids = self._tokenizer.encode(plain, add_special_tokens=False)
            # Asked of the result too, since a tokenizer may find special tokens in normalised text.
            if [token for token in ids if self._tokenizer.is_special(token)] == [
                special.token for special, _, _ in ours
            ]:
                return ids
        return self._encode_pieces(rendered, ours, guard)

    def _render(self, messages: Sequence[Message]) -> str:
        if self._template is None:
            raise ApiError(
                400, "This model has no chat template. Use /v1/completions.", code="chat_unsupported"
            )
        try:
            return self._template.render(
                messages=[{"role": message.role, "content": message.content} for message in messages],
                add_generation_prompt=True,
                tools=None,
                documents=None,
                **self._variables,
            )
        except _Refused as refused:
            raise bad_field("messages", f"were refused by the model's chat template: {refused}") from refused
        except (
            jinja2.TemplateError,
            TypeError,
            ValueError,
            LookupError,
            ArithmeticError,
            AttributeError,
        ) as error:
            raise bad_field("messages", "cannot be rendered by the model's chat template") from error

    def _break(self, content: str, guard: str) -> str:
        """Put the guard into each special token that `content` spells, after its first character."""
        if self._specials is None:
            return content
        # The first character alone is looked for, so that overlapping spellings are all broken.
        return self._specials.starts.sub(lambda match: match[0] + guard, content)

    def _find(self, text: str) -> list[tuple[SpecialToken, int, int]]:
        if self._specials is None:
            return []
        found = self._specials.tokens.finditer(text)
        return [(self._specials.by_text[match["text"]], match.start(), match.end()) for match in found]

    def _encode_pieces(
        self, rendered: str, specials: Sequence[tuple[SpecialToken, int, int]], guard: str
    ) -> tuple[int, ...]:
        ids: list[int] = []
        at = 0
        for special, start, end in specials:
            ids += self._tokenizer.encode_literally(_between(rendered, at, start, special).replace(guard, ""))
            ids.append(special.token)
            at = end
            if special.rstrip:
                at += len(rendered[at:]) - len(rendered[at:].lstrip())
        ids += self._tokenizer.encode_literally(rendered[at:].replace(guard, ""))
        return tuple(ids)


def _places(found: Sequence[tuple[SpecialToken, int, int]], text: str, guard: str) -> list[tuple[str, int]]:
    """Return which special tokens stand where in `text` without its guards."""
    return [(special.text, start - text.count(guard, 0, start)) for special, start, _ in found]


def _between(rendered: str, at: int, start: int, special: SpecialToken) -> str:
    piece = rendered[at:start]
    return piece.rstrip() if special.lstrip else piece


@dataclass(frozen=True, slots=True)
class _Specials:
    """Patterns over a model's special tokens, the longest first, as the tokenizer matches them."""

    by_text: dict[str, SpecialToken]
    tokens: re.Pattern[str]
    starts: re.Pattern[str]


def _pattern(tokenizer: TextTokenizer) -> _Specials | None:
    texts = sorted(tokenizer.specials, key=len, reverse=True)
    if not texts:
        return None
    if len(texts[-1]) == 1:
        raise OperatorError(
            f"the special token {texts[-1]!r} is one character, so a client's text cannot be told from it. "
            "Name another model."
        )
    alternatives = "|".join(re.escape(text) for text in texts)
    starts = "|".join(re.escape(text[0]) + f"(?={re.escape(text[1:])})" for text in texts)
    return _Specials(dict(tokenizer.specials), re.compile(f"(?P<text>{alternatives})"), re.compile(starts))


def _choose_guard(messages: Sequence[Message]) -> str:
    for guard in _GUARDS:
        if not any(guard in message.content for message in messages):
            return guard
    raise bad_field(
        "messages", f"may not hold all of the {len(_GUARDS)} private-use characters kept for the server"
    )


def _special_variables(tokenizer: TextTokenizer) -> dict[str, str]:
    """Return `bos_token` and the like, as templates expect them."""
    variables = {}
    for name, value in tokenizer.settings.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            variables[name] = text
    return variables


def _environment(now: Callable[[], datetime]) -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    def raise_exception(message: str) -> NoReturn:
        raise _Refused(message)

    def tojson(value: Any, indent: int | None = None) -> str:
        # Jinja's own filter escapes HTML, which a prompt does not want.
        return json.dumps(value, ensure_ascii=False, indent=indent)

    def strftime_now(form: str) -> str:
        return now().strftime(form)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return environment
