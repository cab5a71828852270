"""The shipped core, told what a node was told, does what the node says that it did.

Rules: a core is a function of its settings and of the events, so each step is taken again and its rows and
commands are compared as a trace shows them. What a trace hides does not change them, with two exceptions
that are made good here: which prefix pages the index gave, took and forgot is taken from the step itself,
and so is whether a manifest's hash of the tokens was the right one.

After the first difference the two are no longer the same machine, and the rest is not compared. It knows no
law: what a core does wrong of itself, it does here too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvfence.protocol import (
    Decisions,
    DecodeConfig,
    DecodeCore,
    Expectation,
    PageLedger,
    PrefillConfig,
    PrefillCore,
    RouterConfig,
    RouterCore,
    commands,
    events,
)
from kvfence.protocol.errors import KvfenceError, OperatorError
from kvfence.protocol.trace import show_step
from kvfence.protocol.trace_read import read_fields
from kvfence.protocol.vocabulary import Event
from kvfence.protocol.words import Done, IntegrityReason, LeaseId, Manifest, PageRef, Role
from kvfence.verification.conformance_rows import Found
from kvfence.verification.conformance_steps import Start, Step, ViolationKind

Core = RouterCore | PrefillCore | DecodeCore

_OTHER_HASH = b"other"


class _Believing(Decisions):
    """`--fence off`: a closed lease is believed."""

    def manifest_fault(self, manifest: Manifest, expectation: Expectation) -> IntegrityReason | None:  # noqa: ARG002
        """Nothing is compared."""
        return None


class _ToldPrefix:
    """A prefix index that answers what the step at hand says that it answered."""

    def __init__(self, page_tokens: int) -> None:
        self._page_tokens = page_tokens
        self._matched: tuple[int, ...] = ()
        self._evicted: tuple[int, ...] = ()
        self._published: Mapping[LeaseId, tuple[int, ...]] = {}

    def tell(self, step: Step) -> None:
        """Take the answers of the next step."""
        self._matched, self._evicted = (), ()
        self._published = step.published
        for command in step.commands:
            if isinstance(command, commands.StartPrefill):
                shared = command.cached_tokens // self._page_tokens
                self._matched = tuple(ref.page for ref in command.pages[:shared])
            elif isinstance(command, commands.PagesFreed) and isinstance(step.event, events.Prefill):
                self._evicted = self._evicted or command.pages

    def match(self, domain: str, tokens: Sequence[int]) -> tuple[int, ...]:  # noqa: ARG002
        """What it gave."""
        return self._matched

    def publish(self, domain: str, tokens: Sequence[int], pages: Sequence[PageRef]) -> tuple[int, ...]:  # noqa: ARG002
        """What it took of these pages."""
        offered = {ref.page for ref in pages}
        return tuple(page for taken in self._published.values() for page in taken if page in offered)

    def evict(self, n: int) -> tuple[int, ...]:
        """What it forgot."""
        return self._evicted[:n]

    def forget(self, page: int) -> None:
        """Nobody asks for that."""


class CoreCheck:
    """One node's core, made again and told again."""

    def __init__(self, start: Start) -> None:
        """Raise ValueError for a first line that no core was made with."""
        facts = start.facts
        decisions = _decisions(facts)
        self._prefix: _ToldPrefix | None = None
        self._core: Core
        self.has_differed = False
        if start.role is Role.ROUTER:
            self._core = RouterCore(start.peer, read_fields(RouterConfig, facts.get("config")), decisions)
        elif start.role is Role.DECODE:
            decode = read_fields(DecodeConfig, facts.get("config"))
            self._core = DecodeCore(start.peer, decode, decisions, _ledger(facts))
        else:
            prefill = read_fields(PrefillConfig, facts.get("config"))
            self._prefix = _ToldPrefix(prefill.page_tokens)
            self._core = PrefillCore(start.peer, prefill, decisions, _ledger(facts), self._prefix)

    def take(self, step: Step) -> Found:
        """Take the step again; yield the first difference."""
        if self.has_differed:
            return
        if self._prefix is not None:
            self._prefix.tell(step)
        try:
            said = self._core.step(_completed(step))
        except (KvfenceError, LookupError, ArithmeticError) as error:
            self.has_differed = True
            yield ViolationKind.CORE, f"the core cannot take this step: {error}"
            return
        _, _, rows, shown = show_step(step.event, self._core.trail, said)
        for what, does, did in (("rows", rows, step.shown_rows), ("commands", shown, step.shown_commands)):
            if does != did:
                self.has_differed = True
                yield ViolationKind.CORE, f"the core's {what} are others: {_difference(does, did)}"
                return


def _decisions(facts: Mapping[str, Any]) -> Decisions:
    """Return the shipped decisions, less the layers that the node says were left out: no fault is one."""
    chosen: type[Decisions] = Decisions
    without = _names(facts, "without")
    _names(facts, "faults")  # only told by the report, which wants names as well
    if without:
        from kvfence.faults import faulty_decisions, layer_named  # noqa: PLC0415 -- for unsafe runs alone

        try:
            chosen = faulty_decisions((), [layer_named(name) for name in without])
        except OperatorError as error:
            raise ValueError(str(error)) from error
    if facts.get("fence") == "off":
        chosen = type("UnfencedDecisions", (_Believing, chosen), {})
    return chosen()


def _names(facts: Mapping[str, Any], key: str) -> list[str]:
    """Return the names under a key, if any. Raises ValueError for anything else."""
    names = facts.get(key)
    if names is None:
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{key} of a node's first line are names, not {names!r}")
    return names


def _ledger(facts: Mapping[str, Any]) -> PageLedger:
    pages, spare_pages = facts.get("pages"), facts.get("spare_pages")
    if not isinstance(pages, int) or not isinstance(spare_pages, int) or pages < 1 or spare_pages < 0:
        raise ValueError("the first line of a node with a pool says how many pages it has")
    return PageLedger(pages, spare_pages=spare_pages)


def _completed(step: Step) -> Event:
    """Return the event, with a wrong hash where the node says that the manifest was bad."""
    event = step.event
    was_bad = any(row.fact == "CLOSED_BAD" for row in step.rows)
    if was_bad and isinstance(event, events.Closed) and isinstance(event.outcome, Done):
        manifest = replace(event.outcome.manifest, token_hash=_OTHER_HASH)
        return replace(event, outcome=Done(manifest))
    return event


def _difference(does: list[Any], did: list[Any]) -> str:
    for index, (one, other) in enumerate(zip(does, did, strict=False)):
        if one != other:
            return f"{one} and not {other} in place {index}"
    more, who = (does, "more") if len(does) > len(did) else (did, "fewer")
    return f"{abs(len(does) - len(did))} {who}, as {more[min(len(does), len(did))]}"
