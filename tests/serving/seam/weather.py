"""What happens in a world, and how often: sizes, what clients ask, which faults.

A weather is data; `World` acts on it. `must_see` names what a share of seeds has to have met, so that a rig
in which nothing happens does not pass.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Weather:
    """One feature subset. The weights are relative to each other."""

    prefills: int = 2
    decodes: int = 2
    pages: int = 12  # of each pool
    prefill_pages: int | None = None  # of prefill pools, where those are of another size
    prompt_tokens_max: int = 28
    prompt_words: int = 900  # different tokens that a tenant uses
    max_tokens: tuple[int | None, ...] = (None, 1, 2, 5, 12)  # None: up to the end of the context
    requests_max: int = 8  # at a time
    lease_ms: int = 20_000
    tears_pages: bool = True  # False: a page is written at one stroke
    deliver: float = 45.0
    turn: float = 30.0
    write: float = 18.0
    submit: float = 2.5
    cancel: float = 0.7
    kill: float = 0.0
    stop: float = 0.0  # a whole process, for seconds
    stop_writers: float = 0.0  # only the threads that write
    lose: float = 0.0  # one side takes the other for gone
    must_see: tuple[str, ...] = ("tokens", "end length", "end client_gone")


CALM = Weather()
CROWDED = Weather(
    pages=10,
    prompt_tokens_max=14,
    max_tokens=(None, 8, 12),
    requests_max=14,
    cancel=0.2,
    must_see=("tokens", "end length", "attempt preempted"),
)
STORM = Weather(
    kill=0.15,
    stop=0.15,
    stop_writers=0.1,
    lose=0.15,
    must_see=("tokens", "end length", "kill", "stop", "lose", "late page", "restart"),
)
CROWDED_STORM = Weather(
    pages=10,
    prompt_tokens_max=14,
    max_tokens=(None, 8, 12),
    requests_max=14,
    cancel=0.2,
    kill=0.1,
    stop=0.15,
    stop_writers=0.1,
    lose=0.15,
    must_see=("tokens", "end length", "attempt preempted", "kill", "stop", "lose"),
)
# Two writers, one small pool, writers that fall asleep past their lease's end; pages at one stroke, since a
# page that is torn after its hand-over may escape the guard, which says so.
SLEEPY_WRITERS = Weather(
    decodes=1,
    pages=8,
    prompt_tokens_max=14,
    lease_ms=1_500,
    tears_pages=False,
    cancel=1.5,
    stop_writers=0.5,
)
WEATHERS = {
    "calm": CALM,
    "crowded": CROWDED,
    "storm": STORM,
    "crowded-storm": CROWDED_STORM,
    "sleepy-writers": SLEEPY_WRITERS,
}
