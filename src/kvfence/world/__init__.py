"""A deployment without a machine, for whoever wants to see what could happen to it.

Cores and prefix index are the shipped ones; pages hold provenance instead of numbers; everything that can
happen next is a small tuple. `simulation` picks one by seed, `verification` tries all.
"""

from kvfence.world import happenings
from kvfence.world.config import Piece, WorldConfig, world_config
from kvfence.world.memory import Page, Seal, Slot
from kvfence.world.oracle import LEAKS, Finding, Kind
from kvfence.world.records import Job, Link, Pass, Row, Write
from kvfence.world.requests import Ask, Client
from kvfence.world.start import node_name, role_of
from kvfence.world.state import Core, InPlace, Stepper, WorldState
from kvfence.world.world import World, make_world

__all__ = [
    "LEAKS",
    "Ask",
    "Client",
    "Core",
    "Finding",
    "InPlace",
    "Job",
    "Kind",
    "Link",
    "Page",
    "Pass",
    "Piece",
    "Row",
    "Seal",
    "Slot",
    "Stepper",
    "World",
    "WorldConfig",
    "WorldState",
    "Write",
    "happenings",
    "make_world",
    "node_name",
    "role_of",
    "world_config",
]
