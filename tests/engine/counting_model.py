"""A model that counts: after token t comes t + 1. It keeps no KV; what it was asked is remembered."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

VOCAB = 64


@dataclass
class CountingModel:
    """Stands in for a PagedModel in tests of executors and of nodes.

    After `broken` tokens the logits are no numbers. `during` is called in the middle of the next pass, and
    `fault` is raised by it.
    """

    eos_token_ids: tuple[int, ...] = (0,)
    broken: set[int] = field(default_factory=set)
    during: Callable[[], object] | None = None
    fault: BaseException | None = None
    asked: list[list] = field(default_factory=list)

    @property
    def passes(self) -> int:
        """How often it was asked."""
        return len(self.asked)

    def decode(self, _views, rows):
        self.asked.append(list(rows))
        return self._logits([row.token for row in rows])

    def prefill(self, _views, chunks):
        self.asked.append(list(chunks))
        return self._logits([chunk.tokens[-1] for chunk in chunks if chunk.wants_logits])

    def _logits(self, tokens):
        during, self.during = self.during, None
        if during is not None:
            during()
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        logits = torch.zeros(len(tokens), VOCAB)
        for row, token in enumerate(tokens):
            logits[row, (token + 1) % VOCAB] = torch.nan if token in self.broken else 1.0
        return logits
