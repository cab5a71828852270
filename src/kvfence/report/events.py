"""The event stream of a run: what `check`, `audit` and `watch` say, and all that a report is made of.

Rules it keeps:
- A run is a RunStarted, then anything, then one RunEnded. As JSON lines, in this order, it is the source of
  truth: every other format is made from it (`kvfence report convert`).
- Each event is a fact that happened, with seconds since the run began; nothing here is a secret, and no
  response text is in it.
- A reader meets an unknown kind of event with an error that says that the file is from a newer version.
"""

import msgspec

from kvfence.report.finding import Finding, Verdict

FORMAT = 1  # raised when an older reader would misunderstand


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """What all events have: `at_s`, seconds since the run began."""

    at_s: float = 0.0


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario, or a whole run, may use at most."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
        )


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started", omit_defaults=False):
    """`tool` is check, audit or watch; `started` is a time of the wall clock, ISO 8601 in UTC.

    `limits`: what each target's run may use, in the order of `targets`: requests, tokens, bytes, seconds and
    money, of which those without a limit are left out.
    `format` is always written: an older reader has another default.
    """

    tool: str
    version: str
    run: str
    started: str
    targets: tuple[str, ...]
    seed: int | None = None
    profile: str | None = None
    budget: Cost | None = None
    limits: tuple[dict[str, int | float], ...] = ()
    format: int = FORMAT


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure and where it was read: an endpoint and its field, a metric, a line of a log."""

    value: int | float | str | bool
    read_from: str


class NodeRead(Event, frozen=True, kw_only=True, tag="node_read"):
    """What an audit knows of one node.

    A figure that could not be read is not in `figures`. Their names: pool_tokens, page_tokens,
    context_tokens, largest_request_tokens, advertised_tokens, concurrency, and settings as `set.NAME`.
    `ratio` is pool to context, or what stands for it on this engine; `verdict` is ok, too small, lowered,
    unknown or unreachable, and `why` its sentence. An unknown verdict is no pass.
    """

    node: str
    engine: str | None = None
    engine_version: str | None = None
    role: str | None = None
    figures: dict[str, Figure] = {}
    ratio: float | None = None
    verdict: str = "unknown"
    why: str = ""


class PairRead(Event, frozen=True, kw_only=True, tag="pair_read"):
    """A prefill and a decode node that serve requests together; the limit is the smallest on its path."""

    prefill: str
    decode: str
    limit_tokens: int | None = None


class CapabilityLearned(Event, frozen=True, kw_only=True, tag="capability_learned"):
    """What the probe found out about the server, and how."""

    name: str
    value: int | float | str | bool | None
    how: str


class ScenarioStarted(Event, frozen=True, kw_only=True, tag="scenario_started"):
    """A scenario begins, with what it may use."""

    scenario: str
    hazard: str
    cost: Cost


class Answered(Event, frozen=True, kw_only=True, tag="answered"):
    """One request is over. `mark` says what it was for: "control", "probe", "lifeline", …

    `status` None: there was no HTTP answer; `failure` says why. `expected_prompt_tokens` is the run's own
    count.
    """

    scenario: str
    request: int
    tenant: str
    mark: str
    status: int | None = None
    failure: str | None = None
    finish: str | None = None
    expected_prompt_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_s: float | None = None
    total_s: float | None = None


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """No evidence in so many opportunities: the upper 95 % bound of the rate is 3 / (n · c · d)."""

    opportunities: int
    co_residence: float
    sensitivity: float
    upper_95: float


class ScenarioEnded(Event, frozen=True, kw_only=True, tag="scenario_ended"):
    """What a scenario came to. `classes` are the root causes that it can see."""

    scenario: str
    verdict: Verdict
    why: str
    classes: tuple[str, ...] = ()
    bound: Bound | None = None
    p_value: float | None = None
    control: str | None = None
    smallest_effect: str | None = None
    used: Cost = Cost()


class FindingMade(Event, frozen=True, kw_only=True, tag="finding_made"):
    """Something was found. `scenario` None: by a rule of the audit. `accepted`: a baseline's reason."""

    finding: Finding
    scenario: str | None = None
    accepted: str | None = None


class Noted(Event, frozen=True, kw_only=True, tag="noted"):
    """What a reader should know: above all what could not be seen."""

    text: str
    is_warning: bool = False


class RunEnded(Event, frozen=True, kw_only=True, tag="run_ended"):
    """The end: the exit code, and the sentence that stands for it."""

    exit_code: int
    why: str
    used: Cost = Cost()


AnyEvent = (
    RunStarted
    | NodeRead
    | PairRead
    | CapabilityLearned
    | ScenarioStarted
    | Answered
    | ScenarioEnded
    | FindingMade
    | Noted
    | RunEnded
)
