"""Every scenario by its name, in the order in which a run goes through them: cheap and telling ones first.

A scenario is a file with one module-level SCENARIO, a line of import here, and a line in the list below.
"""

from kvfence.check.scenario import Scenario

# In the order of a run. What can end a server, or its neighbours' requests, stands last.
_IN_ORDER: tuple[Scenario, ...] = ()

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _IN_ORDER}

__all__ = ["SCENARIOS"]
