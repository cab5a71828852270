"""Whole deployments in virtual time from one seed: the shipped cores, weather, and an oracle that knows all.

`draw_swarm` draws a run from a seed, `Run` runs it, `run_campaign` runs many; a script of what happened can
be played again, shortened and told.
"""

from kvfence.simulation.campaign import Campaign, run_campaign, run_seed
from kvfence.simulation.outcome import Outcome, Step
from kvfence.simulation.probes import PROBES
from kvfence.simulation.replaying import replay, tell
from kvfence.simulation.run import Run
from kvfence.simulation.shrinking import shrink
from kvfence.simulation.swarm import Feature, Swarm, draw_swarm
from kvfence.simulation.tally import Tally, seeds_to_find

__all__ = [
    "PROBES",
    "Campaign",
    "Feature",
    "Outcome",
    "Run",
    "Step",
    "Swarm",
    "Tally",
    "draw_swarm",
    "replay",
    "run_campaign",
    "run_seed",
    "seeds_to_find",
    "shrink",
    "tell",
]
