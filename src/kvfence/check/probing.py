"""What the steps of the capability probe share: how they ask, and how they say what was learned.

Rules it keeps:
- A probe is ordinary and tiny. It is asked once in each dialect: a refusal that names a field teaches the
  dialect (`dialect`), which is said, and only then is the probe put again, in other words.
- What was learned, and what could not be, is said as it happens.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from kvfence.check.asks import Ask
from kvfence.check.client import ProbingClient
from kvfence.check.dialect import LESSONS_MAX, learn
from kvfence.check.reply import Failure, Reply
from kvfence.check.target import Target
from kvfence.protocol.errors import KvfenceError
from kvfence.report import AnyEvent, CapabilityLearned, Noted

PROBE_TIMEOUT_S = 60.0
PROBE_S_MAX = 180.0
MARK = "capability"
_HIDDEN = frozenset({401, 403})
# The endpoint is not there, as far as a client can tell.
_ABSENT = frozenset({404, 405, 501})


class TargetError(KvfenceError):
    """The target cannot be checked; the run ends with exit code 4."""


class TargetUnreachable(TargetError):  # noqa: N818 -- named for what happened
    """No connection, or nothing behind it that answers."""


class CredentialsRefused(TargetError):  # noqa: N818 -- the same
    """The server answers, and does not let this tenant in."""


@dataclass(kw_only=True)
class Probing:
    """One probe of one target."""

    client: ProbingClient
    target: Target
    emit: Callable[[AnyEvent], None]
    rng: random.Random
    began_s: float
    has_completions: bool = False  # learned by the first contact

    @property
    def tenant(self) -> str:
        """As whom it is asked, unless a step needs two."""
        return self.client.tenants[0]

    @property
    def at_s(self) -> float:
        """Seconds since the probe began."""
        return asyncio.get_running_loop().time() - self.began_s

    @property
    def s_max(self) -> float:
        """How long the whole probe may take."""
        return PROBE_S_MAX * self.target.patience

    @property
    def is_late(self) -> bool:
        """Whether the probe's time is over: what is left of it is not learned."""
        return self.at_s > self.s_max

    def say(self, name: str, value: float | str | bool | None, how: str) -> None:  # noqa: FBT001
        """Say what was learned, and how. None: it could not be."""
        self.emit(CapabilityLearned(at_s=self.at_s, name=name, value=value, how=how))

    def note(self, text: str, *, is_warning: bool = False) -> None:
        """Say what a reader should know."""
        self.emit(Noted(at_s=self.at_s, text=text, is_warning=is_warning))

    async def ask(self, ask: Ask, tenant: str | None = None) -> Reply:
        """Ask once."""
        marked = replace(ask, mark=MARK, timeout_s=min(ask.timeout_s, PROBE_TIMEOUT_S))
        return await self.client.ask(tenant or self.tenant, marked)

    async def teach(self, ask: Ask) -> Reply:
        """Ask, and learn the dialect from refusals that name a field; return the first other reply."""
        for _ in range(LESSONS_MAX):
            reply = await self.ask(ask)
            manner = self.client.manner
            lesson = learn(manner.dialect, reply, self.client.body_of(self.tenant, ask))
            if lesson is None or lesson.dialect == manner.dialect:
                return reply
            self.client.adopt(replace(manner, dialect=lesson.dialect))
            self.say("dialect", lesson.how.partition(";")[0], lesson.how)
        return reply


def refuse_to_go_on(reply: Reply, tenant: str, where: str) -> None:
    """Raise where a reply says that the target cannot be checked at all."""
    if reply.status in _HIDDEN:
        raise CredentialsRefused(
            f"{where} refuses {tenant} with {reply.status}{_words(reply)}; check the key (the variable, the "
            "command or the certificate), and that it may use this model"
        )
    if reply.status is None:
        raise TargetUnreachable(
            f"{where} cannot be reached: {_cause(reply)}; check the URL, the proxy and the certificates"
        )


def is_absent(reply: Reply) -> bool:
    """Whether an endpoint is not there."""
    return reply.status in _ABSENT


def said_of(reply: Reply) -> str:
    """Say in a few words what a reply was, for `how`."""
    if reply.is_answer:
        return f"status {reply.status}"
    status = "" if reply.status is None else f"{reply.status}, "
    return f"{status}{_cause(reply)}"


def _cause(reply: Reply) -> str:
    failure = Failure.UNKNOWN_FORM if reply.failure is None else reply.failure
    return f"{failure.value}{_words(reply)}"


def _words(reply: Reply) -> str:
    return f" ({' '.join(reply.message.split())[:200]})" if reply.message else ""
