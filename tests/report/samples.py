"""Hand-made runs: one that leaks, one in which nothing was seen, an audit, one that was interrupted."""

from kvfence.report import (
    Answered,
    Bound,
    CapabilityLearned,
    Cost,
    Figure,
    Finding,
    FindingMade,
    NodeRead,
    Noted,
    PairRead,
    Place,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Severity,
    Verdict,
)

VERSION, RUN, STARTED = "0.0.0", "run-0", "2026-01-01T00:00:00Z"
TARGET = "http://server.example/v1"
HOSTILE = '<script>alert("x")</script>\x1b[31m\u202e & ]]>'


def started(tool: str = "check", **more) -> RunStarted:
    known = {"version": VERSION, "run": RUN, "started": STARTED, "targets": (TARGET,)}
    return RunStarted(tool=tool, **(known | more))


def unread(**more) -> Finding:
    known = {
        "code": "KVF203",
        "severity": Severity.CRITICAL,
        "about": f"{TARGET} big-model",
        "what": "a prompt of 1,048,064 tokens was answered in 1.2 s, and none of its 5 needles was known",
        "subject_key": "boundary",
        "evidence": {
            "prompt_tokens": 1_048_064,
            "ttft_s": 1.2,
            "needles": "0 of 5",
            "confirmed": True,
            "limit": None,
        },
        "control": "65,536 tokens took 17.4 s, and all 5 needles were known",
        "rival": "the model does not recall at this length: then its time would still be that of reading",
        "fix": "refuse prompts above 681,280 tokens at the router",
        "replay": "kvfence check http://server.example/v1 --replay run-0/boundary/3",
        "smallest_effect": "a band of 512 tokens below the context",
        "place": Place(path="profiles/prod.toml", line=7),
    }
    return Finding(**(known | more))


def reuse(**more) -> Finding:
    known = {
        "code": "KVF207",
        "severity": Severity.MEDIUM,
        "about": f"{TARGET} big-model",
        "what": "20 of 20 prompts of tenant B had cached tokens after tenant A sent them, 0 of 20 without",
        "subject_key": "cross-tenant-reuse",
        "references": ("https://example.org/note",),
    }
    return Finding(**(known | more))


def answered(scenario: str, request: int, mark: str, **more) -> Answered:
    known = {"at_s": float(request), "tenant": "a", "status": 200, "finish": "length", "total_s": 0.5}
    return Answered(scenario=scenario, request=request, mark=mark, **(known | more))


CLOCK = (
    CapabilityLearned(name="clock.a", value=0.05, how="fit on the lower envelope of 12 answers"),
    CapabilityLearned(name="clock.b", value=2.5e-4, how="fit on the lower envelope of 12 answers"),
    CapabilityLearned(name="clock.c", value=1.2e-10, how="fit on the lower envelope of 12 answers"),
)
TIMED = (
    answered("boundary", 1, "clock", expected_prompt_tokens=1_024, prompt_tokens=1_024, ttft_s=0.31),
    answered("boundary", 2, "clock", expected_prompt_tokens=16_384, prompt_tokens=16_384, ttft_s=4.2),
    answered("boundary", 3, "clock", expected_prompt_tokens=65_536, prompt_tokens=65_536, ttft_s=17.4),
    answered("boundary", 4, "probe", expected_prompt_tokens=1_048_064, prompt_tokens=1_048_064, ttft_s=1.2),
)
REUSED = tuple(
    answered("cross-tenant-reuse", 10 + number, mark, prompt_tokens=900, cached_tokens=cached, ttft_s=ttft_s)
    for number, (mark, cached, ttft_s) in enumerate(
        (
            ("cold", 0, 0.41),
            ("cold", 0, 0.44),
            ("same tenant", 896, 0.05),
            ("same tenant", 896, 0.06),
            ("other tenant", 896, 0.06),
            ("other tenant", None, 0.05),
        )
    )
)
ONE_WORD = (
    ScenarioStarted(
        at_s=0.5, scenario="one-word", hazard="ordinary", cost=Cost(requests=4, prompt_tokens=120)
    ),
    answered("one-word", 0, "probe", prompt_tokens=30, completion_tokens=1, ttft_s=0.1),
    ScenarioEnded(
        at_s=0.9,
        scenario="one-word",
        verdict=Verdict.NO_EVIDENCE,
        why="no evidence in 12 opportunities",
        classes=("row-mixup",),
        bound=Bound(opportunities=12, co_residence=1.0, sensitivity=0.9, upper_95=0.2778),
        control="the same four one after another",
        smallest_effect="one word in 12 answers",
        used=Cost(requests=12, prompt_tokens=360, completion_tokens=12, seconds=3.0),
    ),
)
NOT_TESTED = ScenarioEnded(
    at_s=1.0, scenario="stale-handoff", verdict=Verdict.NOT_TESTED, why="needs a server of one's own"
)
INCONCLUSIVE = ScenarioEnded(
    at_s=1.1,
    scenario="churn-steady",
    verdict=Verdict.INCONCLUSIVE,
    why="3 of 20 rounds were answered",
    p_value=0.2,
)

LEAKING = (
    started(
        profile="quick", seed=7, budget=Cost(requests=60, prompt_tokens=1_300_000, completion_tokens=500)
    ),
    CapabilityLearned(name="model", value="big-model", how="/v1/models"),
    *ONE_WORD,
    ScenarioStarted(at_s=1.0, scenario="boundary", hazard="heavy", cost=Cost(requests=13)),
    *CLOCK,
    *TIMED,
    FindingMade(at_s=5.0, finding=unread(), scenario="boundary"),
    ScenarioEnded(
        at_s=5.1,
        scenario="boundary",
        verdict=Verdict.UNREAD,
        why="a prompt below the context was answered unread",
        used=Cost(requests=13, prompt_tokens=1_310_000, completion_tokens=104, seconds=90.0),
    ),
    ScenarioStarted(at_s=6.0, scenario="cross-tenant-reuse", hazard="ordinary", cost=Cost(requests=40)),
    *REUSED,
    FindingMade(at_s=16.0, finding=reuse(), scenario="cross-tenant-reuse"),
    ScenarioEnded(
        at_s=16.1,
        scenario="cross-tenant-reuse",
        verdict=Verdict.EXPOSED,
        why="counters show it",
        p_value=1.4e-11,
    ),
    NOT_TESTED,
    Noted(at_s=16.2, text="one node of two was not seen", is_warning=True),
    RunEnded(at_s=17.0, exit_code=1, why="2 findings of severity medium or worse", used=Cost(requests=57)),
)
QUIET = (
    started(profile="quick", seed=7),
    *ONE_WORD,
    NOT_TESTED,
    Noted(at_s=2.0, text="both tenants use one key"),
    RunEnded(at_s=3.0, exit_code=0, why="no evidence in 12 opportunities", used=Cost(requests=12)),
)
INCIDENT = Finding(
    code="KVF101",
    severity=Severity.CRITICAL,
    about="prefill-1",
    what="the pool holds 681,280 tokens and the context is 1,048,576: 64.97 % of it",
    subject_key="pool<context",
    evidence={"pool_tokens": 681_280, "context_tokens": 1_048_576},
    fix="--context-length 681280, or a pool of at least 1,048,576 tokens",
    place=Place(path="logs/prefill-1.log", line=212),
)
AUDIT = (
    started("audit", targets=("http://prefill-1:30000", "http://decode-1:30000", "logs/prefill-1.log")),
    NodeRead(
        at_s=0.1,
        node="prefill-1",
        engine="sglang",
        engine_version="0.5.19",
        role="prefill",
        figures={
            "pool_tokens": Figure(value=681_280, read_from="logs/prefill-1.log line 212"),
            "context_tokens": Figure(value=1_048_576, read_from="logs/prefill-1.log line 212"),
            "set.kv_canary": Figure(value="none", read_from="/server_info kv_canary"),
        },
        ratio=0.6497,
        verdict="too small",
    ),
    NodeRead(
        at_s=0.2,
        node="decode-1",
        engine="sglang",
        engine_version="0.5.19",
        role="decode",
        figures={
            "pool_tokens": Figure(value=2_086_558, read_from="/server_info max_total_num_tokens"),
            "context_tokens": Figure(value=1_048_576, read_from="/server_info context_length"),
        },
        ratio=1.9899,
        verdict="ok",
    ),
    NodeRead(at_s=0.3, node="decode-2", verdict="unknown", why="metrics are off"),
    PairRead(at_s=0.4, prefill="prefill-1", decode="decode-1", limit_tokens=681_275),
    PairRead(at_s=0.4, prefill="prefill-1", decode="decode-2"),
    FindingMade(
        at_s=0.5,
        finding=Finding(
            code="KVF104",
            severity=Severity.MEDIUM,
            about="decode-2",
            what="pool and context could not be read",
            subject_key="unknown",
        ),
    ),
    FindingMade(at_s=0.5, finding=INCIDENT),
    FindingMade(
        at_s=0.6,
        finding=Finding(
            code="KVF114",
            severity=Severity.MEDIUM,
            about="prefill-1",
            what="/metrics answers without a key",
            subject_key="open",
        ),
        accepted="inner network (until 2027-01-31)",
    ),
    RunEnded(at_s=0.7, exit_code=1, why="2 findings of severity medium or worse"),
)
INTERRUPTED = (
    started(profile="standard"),
    *ONE_WORD,
    INCONCLUSIVE,
    ScenarioStarted(at_s=2.0, scenario="boundary", hazard="heavy", cost=Cost(requests=13)),
    *CLOCK,
    *TIMED[:2],
)
RUNS = {"leaking": LEAKING, "quiet": QUIET, "audit": AUDIT, "interrupted": INTERRUPTED}
