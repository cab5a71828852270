"""A finding: what was seen, how sure it is, and what to do; the same for every instrument and every format.

Rules it keeps:
- A finding carries a stable code. What the code means, and how it is mended, stands once, in `codes`.
- It says its control, and the rival explanation that it could not exclude.
- It never holds response text of others, nor a key: evidence is counts, lengths, timings, keyed hashes, and
  marks that the run itself made.
"""

import hashlib
from enum import StrEnum, unique

import msgspec


@unique
class Severity(StrEnum):
    """How bad it is if true, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)

    def is_at_least(self, other: "Severity") -> bool:
        """Whether it is as bad as `other`, or worse."""
        return self.rank <= other.rank


@unique
class Verdict(StrEnum):
    """What a scenario came to. `NO_EVIDENCE` is never "safe": it comes with the bound that n tries give."""

    LEAK = "leak"  # a foreign marker, or exact interference that was reproduced
    UNREAD = "unread"  # an answer to a long prompt that nobody read: the incident, without foreign text
    TRUNCATED = "truncated"  # part of the prompt was dropped without a word
    HANG = "hang"  # the server stopped answering: others, too
    SUSPECT = "suspect"  # reproduced divergence above a threshold that was fitted on controls
    EXPOSED = "exposed"  # timing, counters, advertised limits or a missing refusal
    NO_EVIDENCE = "no evidence"
    NOT_TESTED = "not tested"  # a need of the scenario was not met, or the user did not allow it
    INCONCLUSIVE = "inconclusive"  # it ran, and saw too little to say anything


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a finding points to in a file of the user's: a profile's line, a log's line. Lines start at 1."""

    path: str
    line: int


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was found.

    `about` names the node, pair or endpoint and model; `what` is one sentence with the numbers in it;
    `evidence` are named facts, in order; `references` add to those of the code; `subject_key` is what makes
    two findings of two runs the same one (it holds no time and no measured number).
    """

    code: str
    severity: Severity
    about: str
    what: str
    subject_key: str
    evidence: dict[str, str | int | float | bool | None] = {}
    control: str | None = None
    rival: str | None = None
    fix: str | None = None
    replay: str | None = None
    smallest_effect: str | None = None
    references: tuple[str, ...] = ()
    place: Place | None = None

    @property
    def fingerprint(self) -> str:
        """32 hex digits that stay the same from run to run; baselines and SARIF go by it."""
        what = f"{self.code}\x00{self.about}\x00{self.subject_key}"
        return hashlib.sha256(what.encode()).hexdigest()[:32]
