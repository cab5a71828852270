"""The audit: what running engines and their logs say of pools, contexts and settings, held against rules."""

from kvfence.audit.baseline import Baseline, read_baseline, write_baseline
from kvfence.audit.deployment import Access, Deployment, NodeSpec, PairSpec, read_deployment
from kvfence.audit.gather import Around
from kvfence.audit.run import Audited, audit
from kvfence.audit.sources import spec_of

__all__ = [
    "Access",
    "Around",
    "Audited",
    "Baseline",
    "Deployment",
    "NodeSpec",
    "PairSpec",
    "audit",
    "read_baseline",
    "read_deployment",
    "spec_of",
    "write_baseline",
]
