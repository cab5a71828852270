"""What became of one run: findings, ends, probes, and the script by which it can be played again."""

from collections.abc import Iterable
from dataclasses import dataclass

from kvfence.protocol.words import Peer
from kvfence.world import Client, Finding
from kvfence.world import happenings as h

Step = tuple[int, h.Happening]  # when, in microseconds of virtual time, and what


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. `script` is what happened, in order; it is kept for runs with findings, and where asked."""

    seed: int
    findings: tuple[Finding, ...]
    virtual_us: int
    happenings: int
    requests: int
    ends: dict[str, int]
    probes: dict[str, int]
    rows: tuple[tuple[str, str, str], ...]  # table rows that were taken: role, state, fact
    catches: dict[str, int]
    quarantined: int = 0  # pages that decode nodes still show in quarantine
    script: tuple[Step, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


NOBODY = Peer("deployment", 1)  # where a finding about the whole is


def ends_of(clients: Iterable[Client]) -> dict[str, int]:
    """How often requests ended for each reason; a refusal's own reason is named."""
    ends: dict[str, int] = {}
    for client in clients:
        name = "never ended"
        if client.is_lost:
            name = "router died"
        elif client.end is not None:
            refusal = client.end.refusal
            name = client.end.reason.value if refusal is None else f"refused: {refusal.code.value}"
        ends[name] = ends.get(name, 0) + 1
    return ends
