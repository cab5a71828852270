"""Readers of what engines say: one file an engine."""

from kvfence.audit.readers.interface import Reader
from kvfence.audit.readers.registry import GENERIC, READERS, all_forms, recognise, scan_of

__all__ = ["GENERIC", "READERS", "Reader", "all_forms", "recognise", "scan_of"]
