"""Exploration of the shipped cores: every order of events within a scope, breadth first.

`scopes` says how much of the world, `search` visits it, `explorer` is what others ask.
"""

from kvfence.verification.catalogue import SCOPES
from kvfence.verification.explorer import draw, explorer_finds, tell
from kvfence.verification.scopes import Scope, Weather, ask, scope_named, small
from kvfence.verification.search import Counterexample, Level, Limits, Report, Why, search

__all__ = [
    "SCOPES",
    "Counterexample",
    "Level",
    "Limits",
    "Report",
    "Scope",
    "Weather",
    "Why",
    "ask",
    "draw",
    "explorer_finds",
    "scope_named",
    "search",
    "small",
    "tell",
]
