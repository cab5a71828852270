"""A session without a server: a function answers, and every event is kept. For the tests of bench and run."""

import asyncio
import inspect
from collections.abc import Callable

from kvfence.check.asks import Ask
from kvfence.check.bench import Session
from kvfence.check.budget import Budget, Limits
from kvfence.check.known import Known, TokenCounter
from kvfence.check.markers import MarkerBook
from kvfence.check.reply import Reply, Text

KNOWN = Known(model="m", has=frozenset(), counter=TokenCounter(count=len, how="bytes", error=0.2))


class FunctionClient:
    """Answers every ask by a function, plain or asynchronous."""

    tenants = ("anna", "berta")

    def __init__(self, answer: Callable) -> None:
        self._answer = answer
        self.asked: list[tuple[str, Ask]] = []
        self.cancelled = 0

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        self.asked.append((tenant, ask))
        try:
            answer = self._answer(tenant, ask)
            return await answer if inspect.isawaitable(answer) else answer
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def aclose(self) -> None:
        """Nothing is open."""


def said(text: str, place: str = "content") -> Reply:
    """A whole answer of one text."""
    return Reply(status=200, texts=(Text(place, text),), total_s=0.1)


def session_of(
    client: FunctionClient, *, limits: Limits | None = None, small: Callable | None = None
) -> Session:
    """A session whose events are in its list `emit.__self__`; the lifeline always works unless `small` says."""
    return Session(
        client=client,
        lifeline_client=FunctionClient(small or (lambda _tenant, _ask: said("one two three"))),
        known=KNOWN,
        book=MarkerBook(),
        budget=Budget(limits or Limits()),
        tenants=client.tenants,
        emit=[].append,
        began_s=asyncio.get_running_loop().time(),
    )
