"""What proves the shipped protocol: exhaustive exploration, an independent twin, conformance of real traces.

The names are loaded when they are first used: who checks a trace needs no explorer.
"""

from typing import TYPE_CHECKING

from kvfence.lazy import on_first_use

if TYPE_CHECKING:
    from kvfence.verification.conformance import NodeReport, TraceReport, check_trace, render_trace
    from kvfence.verification.conformance_steps import Place, Violation, ViolationKind

__all__ = [
    "NodeReport",
    "Place",
    "TraceReport",
    "Violation",
    "ViolationKind",
    "check_trace",
    "render_trace",
]

_HOMES = {
    "NodeReport": "conformance",
    "Place": "conformance_steps",
    "TraceReport": "conformance",
    "Violation": "conformance_steps",
    "ViolationKind": "conformance_steps",
    "check_trace": "conformance",
    "render_trace": "conformance",
}

__getattr__ = on_first_use(__name__, _HOMES)
