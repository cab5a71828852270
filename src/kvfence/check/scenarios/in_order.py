"""Every scenario by its name, in the order in which a run goes through them: cheap and telling ones first.

A scenario is a file with one module-level SCENARIO, a line of import here, and a line in the list below.
"""

from kvfence.check.scenario import Scenario
from kvfence.check.scenarios.a_x_a import SCENARIO as A_X_A
from kvfence.check.scenarios.abort_refill import SCENARIO as ABORT_REFILL
from kvfence.check.scenarios.birthday import SCENARIO as BIRTHDAY
from kvfence.check.scenarios.boundary import SCENARIO as BOUNDARY
from kvfence.check.scenarios.bucket_edges import SCENARIO as BUCKET_EDGES
from kvfence.check.scenarios.burst_prefix import SCENARIO as BURST_PREFIX
from kvfence.check.scenarios.churn_steady import SCENARIO as CHURN_STEADY
from kvfence.check.scenarios.counterfactual import SCENARIO as COUNTERFACTUAL
from kvfence.check.scenarios.cross_tenant_reuse import SCENARIO as CROSS_TENANT_REUSE
from kvfence.check.scenarios.fault_injection import SCENARIO as FAULT_INJECTION
from kvfence.check.scenarios.first_token import SCENARIO as FIRST_TOKEN
from kvfence.check.scenarios.full_pool import SCENARIO as FULL_POOL
from kvfence.check.scenarios.id_collision import SCENARIO as ID_COLLISION
from kvfence.check.scenarios.identity_swap import SCENARIO as IDENTITY_SWAP
from kvfence.check.scenarios.long_recall import SCENARIO as LONG_RECALL
from kvfence.check.scenarios.marker_sweep import SCENARIO as MARKER_SWEEP
from kvfence.check.scenarios.mixed_constraints import SCENARIO as MIXED_CONSTRAINTS
from kvfence.check.scenarios.one_word import SCENARIO as ONE_WORD
from kvfence.check.scenarios.plausibility import SCENARIO as PLAUSIBILITY
from kvfence.check.scenarios.spill_return import SCENARIO as SPILL_RETURN
from kvfence.check.scenarios.stale_handoff import SCENARIO as STALE_HANDOFF

# In the order of a run. What can end a server, or its neighbours' requests, stands last.
_IN_ORDER: tuple[Scenario, ...] = (
    ONE_WORD,
    FIRST_TOKEN,
    PLAUSIBILITY,
    MIXED_CONSTRAINTS,
    MARKER_SWEEP,
    BUCKET_EDGES,
    A_X_A,
    IDENTITY_SWAP,
    BIRTHDAY,
    LONG_RECALL,
    CHURN_STEADY,
    BURST_PREFIX,
    SPILL_RETURN,
    CROSS_TENANT_REUSE,
    COUNTERFACTUAL,
    BOUNDARY,
    ID_COLLISION,
    FULL_POOL,
    ABORT_REFILL,
    STALE_HANDOFF,
    FAULT_INJECTION,
)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _IN_ORDER}
