"""Who a tenant is to the server: bearer keys, named headers, and tokens that a command gives.

Rules it keeps:
- A secret shows itself to nobody: its `repr` and `str` are words, and only `reveal` gives its text. Keys come
  from the environment or from a command, never from a file or the command line.
- Every secret that was ever used is known to the Redactor, which takes it out of any text that leaves.
- A command runs without a shell; neither its output nor its complaints, which may repeat a secret that no
  Redactor knows yet, are shown or logged; and its token is used until its time is
  over or the server says 401. A refused token is not tried again by itself: the next request asks for a new
  one.

Certificates are `tls`; which tenant has which credential is `target`.
"""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol
from urllib.parse import quote

from kvfence.protocol.errors import OperatorError, invariant

SECRET_CHARS_MAX = 16_384
# Whoever writes "x" or "none" where a key is wanted has no secret, and taking such a word out of a report
# would leave nothing of it.
PLACEHOLDER_CHARS_MAX = 5
COMMAND_S_MAX = 30.0
DEFAULT_TTL_S = 300.0
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_VISIBLE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


class Secret:
    """A text that does not show itself."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """`text` is the secret."""
        self._text = text

    def reveal(self) -> str:
        """Return the text, for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        """Say that there is one."""
        return "Secret(not shown)"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        """Refuse to be written anywhere."""
        raise TypeError("a secret is not pickled or copied into a file")


# What a server may put between the characters of a key that it shows.
_BETWEEN = r"[\s._\-]{0,2}"
BEGINNING_CHARS = 12  # of a key, which are shown to say which one it is


class Redactor:
    """Takes the secrets that it knows out of texts, in the spellings in which they travel.

    Servers that echo a key may change its case, space its letters, or show its beginning: these go, too.
    """

    WORD = "[redacted]"

    def __init__(self) -> None:
        """It knows none at first."""
        self._spellings: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def learn(self, secret: Secret) -> None:
        """Know one more. A placeholder (five characters or fewer) is none."""
        text = secret.reveal()
        if len(text) <= PLACEHOLDER_CHARS_MAX:
            return
        encoded = base64.b64encode(text.encode()).decode()
        added = {text, quote(text, safe=""), json.dumps(text)[1:-1], encoded, encoded.rstrip("=")}
        if added <= self._spellings:
            return
        self._spellings |= added
        # The longest first: a key that begins another must not leave the other's end behind.
        longest_first = sorted(self._spellings, key=len, reverse=True)
        spaced = (_BETWEEN.join(map(re.escape, one)) for one in longest_first)
        begun = (re.escape(one[:BEGINNING_CHARS]) for one in longest_first if len(one) > 2 * BEGINNING_CHARS)
        self._pattern = re.compile("|".join((*spaced, *begun)), re.IGNORECASE)

    def redact(self, text: str) -> str:
        """Return the text with every known secret replaced."""
        return text if self._pattern is None else self._pattern.sub(self.WORD, text)


@dataclass(frozen=True, slots=True)
class Headed:
    """Headers that carry a credential, and which issue of it they carry: what a 401 is about."""

    headers: Mapping[str, str]
    issue: int = 0

    def __repr__(self) -> str:
        """Name the headers, not what is in them."""
        return f"Headed({', '.join(self.headers)}; not shown)"


class Credential(Protocol):
    """What makes a request its tenant's."""

    async def headed(self) -> Headed:
        """Return the headers of one request. Raises OperatorError where there is no token to be had."""

    def refused(self, issue: int) -> None:
        """Hear that the server refused that issue (401)."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """The header in which a key travels: `Authorization: Bearer KEY`, unless the server has its own."""

    header: str = "Authorization"
    scheme: str | None = "Bearer"

    def filled(self, secret: Secret) -> dict[str, str]:
        """Return the header with the secret in it."""
        text = secret.reveal()
        return {self.header: text if self.scheme is None else f"{self.scheme} {text}"}


BEARER = Carrier()


def named_header(name: str) -> Carrier:
    """Return what carries a key that stands bare in a header of its own, such as `api-key`."""
    if not _HEADER_NAME.fullmatch(name):
        raise OperatorError(f"{name!r} is no name of an HTTP header; correct the key `header`")
    return BEARER if name.lower() == "authorization" else Carrier(name, None)


class NoCredential:
    """Nothing is sent: the anonymous tenant, or one that its certificate names."""

    async def headed(self) -> Headed:
        """Return no headers."""
        return Headed({})

    def refused(self, issue: int) -> None:
        """Nothing can be done about it."""


class Key:
    """A key that does not change during a run."""

    def __init__(self, secret: Secret, carrier: Carrier = BEARER) -> None:
        """`secret` was checked by `secret_of`."""
        self._secret = secret
        self._carrier = carrier

    async def headed(self) -> Headed:
        """Return its header."""
        return Headed(self._carrier.filled(self._secret))

    def refused(self, issue: int) -> None:
        """Nothing can be done about it."""

    def __repr__(self) -> str:
        """Say where it travels."""
        return f"Key(in {self._carrier.header}; not shown)"


RunCommand = Callable[[tuple[str, ...]], Awaitable[tuple[int, bytes]]]


class TokenCommand:
    """Short-lived tokens: a command prints one, and it is used for `ttl_s` seconds or until a 401."""

    def __init__(
        self,
        argv: tuple[str, ...],
        redactor: Redactor,
        *,
        carrier: Carrier = BEARER,
        ttl_s: float = DEFAULT_TTL_S,
        run: RunCommand | None = None,
    ) -> None:
        """`argv` is run as it is. `run` stands in for the operating system in tests."""
        invariant(argv, "a token command has a program")
        self._argv = argv
        self._redactor = redactor
        self._carrier = carrier
        self._ttl_s = ttl_s
        self._run = run or run_command
        self._secret: Secret | None = None
        self._issue = 0
        self._until_s = 0.0
        self._turn = asyncio.Lock()

    async def headed(self) -> Headed:
        """Return the token's header, from the command where the last one is over."""
        # Requests that start together wait for one run of the command instead of starting one each.
        async with self._turn:
            now_s = asyncio.get_running_loop().time()
            if self._secret is None or now_s >= self._until_s:
                self._secret = await self._fetch()
                self._issue += 1
                self._until_s = now_s + self._ttl_s
            return Headed(self._carrier.filled(self._secret), self._issue)

    def refused(self, issue: int) -> None:
        """Forget the token, unless a newer one is there already: late refusals speak of the old one."""
        if issue == self._issue:
            self._secret = None

    async def _fetch(self) -> Secret:
        status, said = await self._run(self._argv)
        if status != 0:
            raise OperatorError(
                f"the token command {self._argv[0]!r} ended with {status}; what it printed is withheld, "
                "since it may hold a secret: run it by hand to see it, and correct `key_command` of the "
                "profile"
            )
        secret = secret_of(said.decode(errors="replace").strip(), f"the output of {self._argv[0]!r}")
        self._redactor.learn(secret)
        return secret

    def __repr__(self) -> str:
        """Name the program alone: arguments may hold what is none of a log's business."""
        return f"TokenCommand({self._argv[0]!r}; not shown)"


async def run_command(argv: tuple[str, ...]) -> tuple[int, bytes]:
    """Run a command without a shell; return its status and output. It has 30 seconds."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise OperatorError(
            f"the token command {argv[0]!r} does not start ({error.strerror}); correct the key `key_command` "
            "of the profile: a list of the program and its arguments, without a shell"
        ) from error
    try:
        async with asyncio.timeout(COMMAND_S_MAX):
            said, _ = await process.communicate()
    except TimeoutError as error:
        raise OperatorError(
            f"the token command {argv[0]!r} did not end within {COMMAND_S_MAX:g} s; it may wait for somebody "
            "to type: use a form of it that asks nothing"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    invariant(process.returncode is not None, "a process that was waited for has ended")
    return process.returncode or 0, said


def secret_of(text: str, origin: str) -> Secret:
    """Return a text as a secret that a header can carry; `origin` says in an error where it came from."""
    if not text:
        raise OperatorError(f"{origin} is empty where a key is wanted; put the key there")
    if len(text) > SECRET_CHARS_MAX or not _VISIBLE.fullmatch(text):
        raise OperatorError(
            f"{origin} is no key: a key is one line of at most {SECRET_CHARS_MAX:,} visible ASCII "
            "characters; look for a line break or a quotation mark too many"
        )
    return Secret(text)


def from_environment(name: str, environ: Mapping[str, str]) -> Secret:
    """Return the secret that a variable holds. The error names the variable, never its value."""
    if name not in environ:
        # Somebody may have given the key where its variable's name is wanted: such a word is not repeated.
        shown = name if _VARIABLE.fullmatch(name) else "of that name (not repeated here: it may be a key)"
        raise OperatorError(
            f"there is no environment variable {shown}; export the key under a name, and give that name"
        )
    return secret_of(environ[name].strip(), f"the environment variable {name}")
