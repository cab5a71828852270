"""A deployment without processes, for tests of the order in which things are asked and waited for.

The real one is run by `test_deployment.py` (its process) and `test_run.py` (the whole).
"""

from pathlib import Path

import numpy as np

from kvfence.kv import SEAL_DTYPE, LayerShape, PageLayout
from kvfence.replay.client import Answer, Metrics
from kvfence.replay.pool_view import Snapshot
from tests.replay.samples import LEAKED


class FakeView:
    """A pool of two blank pages."""

    layout = PageLayout((LayerShape(1, 8, 8),), 16, "float32")

    def trailers(self):
        return np.zeros(2, SEAL_DTYPE)

    def snapshot(self):
        return Snapshot(self.trailers(), ((None,) * 16,) * 2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class FakeStream:
    def __init__(self, deployment):
        self._deployment = deployment

    def wait_first(self):
        self._deployment.asked.append("tenant-a stays")
        return self._deployment.serves_first

    def close(self):
        self._deployment.asked.append("tenant-a leaves")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class FakeDeployment:
    """Answers A with thanks and B with A's words, or refuses B for a reason that it counts."""

    command = "kvfence serve"
    run_dir = Path()

    def __init__(self):
        self.asked, self.statuses, self.leases, self.refuses = [], {}, 0, None
        self.view, self.serves_first = FakeView(), True
        self.client = self

    def count_tokens(self, text):
        return len(text.split())

    def stream(self, ask):
        return FakeStream(self)

    def complete(self, ask):
        self.asked.append(ask.tenant)
        status = self.statuses.get(ask.tenant, 200)
        if ask.tenant == "tenant-b" and self.refuses:
            return Answer(ask, 500, "", 0.1, code="integrity", message="refused")
        text = LEAKED if ask.tenant == "tenant-b" else "ok"
        return Answer(
            ask,
            status,
            text,
            0.5,
            first_token_seconds=0.5,
            finish="length",
            prompt_tokens=10,
            completion_tokens=3,
        )

    def metrics(self):
        reasons = ((self.refuses, 1.0),) if self.refuses else ()
        return Metrics(
            (
                ("kvfence_leases", {}, float(self.leases)),
                *(("kvfence_integrity_failures_total", {"reason": reason}, n) for reason, n in reasons),
            )
        )

    def wait_until(self, accept, seconds):
        return accept()
