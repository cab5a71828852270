"""Exploration of the shipped cores, every order of events within a scope, and conformance of real traces.

`scopes` says how much of the world, `search` visits it, `explorer` is what others ask; `conformance` holds
the event log of a real run against tables, laws and cores.
"""

from kvfence.verification.catalogue import LISTS, SCOPES
from kvfence.verification.conformance import NodeReport, TraceReport, check_trace, render_trace
from kvfence.verification.conformance_steps import Place, Violation, ViolationKind
from kvfence.verification.explorer import draw, explorer_finds, find_stranded, tell
from kvfence.verification.outcome import Counterexample, Homing, Level, Report, Walks, Why
from kvfence.verification.scopes import Scope, Weather, ask, scope_named, small
from kvfence.verification.search import Limits, search

__all__ = [
    "LISTS",
    "SCOPES",
    "Counterexample",
    "Homing",
    "Level",
    "Limits",
    "NodeReport",
    "Place",
    "Report",
    "Scope",
    "TraceReport",
    "Violation",
    "ViolationKind",
    "Walks",
    "Weather",
    "Why",
    "ask",
    "check_trace",
    "draw",
    "explorer_finds",
    "find_stranded",
    "render_trace",
    "scope_named",
    "search",
    "small",
    "tell",
]
