"""Act 4, the fix: nothing is broken any more.

Three things are shown on real processes:
- a context that the pool cannot hold does not start, and says why;
- with the context lowered to the pool, tenant B's prompt is refused, with both numbers, and a shorter one
  is served from B's own slots alone, though A's secret stood in the same pool: that is the control of act 2;
- a client that leaves in mid-transfer, while the writer stands still: decode's pages stay in quarantine for
  as long as the writer may still write, whatever the clock says, and are free when it has closed. Meanwhile
  no more is posted than the batches that were in flight.

The writer is stopped by SIGSTOP: it is not dead, and what it has begun it will finish.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from kvfence.kv import SealKind
from kvfence.protocol.config import BATCHES_IN_FLIGHT_MAX
from kvfence.protocol.errors import InternalError
from kvfence.protocol.words import LeaseId, RefusalCode
from kvfence.replay.client import Answer
from kvfence.replay.deployment import Deployment, Say
from kvfence.replay.pool_view import DECODE, PoolView
from kvfence.replay.scene import BATCH_BYTES, Play, Prompts
from kvfence.replay.trial import CALLER, Trial, run_trial, wait_home

PREFILL = "prefill-0"
WRITTEN_PAGES_FIRST = 8  # the transfer is well under way
PATIENCE_SECONDS = 30.0
STANDSTILL_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Moment:
    """The decode pool at one moment of the abort. `written` are pages of the lease that carry its seal."""

    what: str
    seconds: float
    quarantined: int
    free: int
    written: int


@dataclass(frozen=True, slots=True)
class Abort:
    """What was seen of a client that left in mid-transfer, moment by moment."""

    prompt_pages: int
    batch_pages: int
    moments: tuple[Moment, ...]
    served_after: bool

    @property
    def landed_late(self) -> int:
        """Pages that landed between the client's leaving and the writer's last word."""
        return self.moments[-1].written - self.moments[0].written

    @property
    def late_max(self) -> int:
        """The bound: the batches that may be in flight for one lease."""
        return BATCHES_IN_FLIGHT_MAX * self.batch_pages

    @property
    def holds(self) -> bool:
        """Whether quarantine lasted as long as the writer stood still, and posting was bounded."""
        *during, after = self.moments[1:]
        kept = bool(during) and all(moment.quarantined >= self.prompt_pages for moment in during)
        home = after.quarantined == 0 and after.written < self.prompt_pages
        return kept and home and self.landed_late <= self.late_max and self.served_after


@dataclass(frozen=True, slots=True)
class Fix:
    """Act 4's result."""

    refused_start: str
    command: str
    answer: Answer
    control: Trial
    abort: Abort

    @property
    def is_refused(self) -> bool:
        """Whether tenant B was told that its prompt is too long."""
        return self.answer.status == CALLER and self.answer.code == RefusalCode.CONTEXT_LENGTH.value

    @property
    def is_clean(self) -> bool:
        """Whether the prompt that fits was answered, out of B's own slots."""
        control = self.control
        has_map = control.page_map is not None and control.page_map.read_slots > 0
        return control.answer.is_whole and not control.leaked and has_map and not control.foreign_read

    @property
    def holds(self) -> bool:
        """Whether the act showed what it says."""
        return self.is_refused and self.is_clean and self.abort.holds


def show_fix(refusing: Deployment, fixed: Deployment, play: Play, say: Say) -> Fix:
    """Play act 4: `refusing` must not start, `fixed` is ready."""
    prompts = play.prompts(fixed.count_tokens)
    say("a context larger than the pool does not start")
    refused_start = refusing.wait_refused()
    say("tenant B sends the same prompt to the deployment that fits")
    answer = fixed.client.complete(prompts.b)
    control = run_trial(fixed, play, None, say, ask=prompts.b_shorter)
    return Fix(refused_start, fixed.command, answer, control, show_abort(fixed, prompts, say))


def show_abort(deployment: Deployment, prompts: Prompts, say: Say) -> Abort:
    """A long prompt, its writer stopped in mid-transfer, its client gone; then the writer goes on."""
    with PoolView.of_deployment(deployment.run_dir) as pool:
        watch = _Watch(deployment, pool)
        moments = _play_abort(watch, prompts, say)
    wait_home(deployment)
    again = deployment.client.complete(prompts.small)
    tokens = deployment.count_tokens(prompts.long.prompt)
    return Abort(
        prompt_pages=pool.layout.pages_for(tokens),
        batch_pages=BATCH_BYTES // pool.layout.page_bytes,
        moments=tuple(moments),
        served_after=again.is_whole,
    )


def _play_abort(watch: "_Watch", prompts: Prompts, say: Say) -> list[Moment]:
    deployment = watch.deployment
    say("a client sends a long prompt, and its pages begin to arrive")
    stream = deployment.client.stream(prompts.long)
    try:
        watch.wait("its pages begin to arrive", lambda: watch.written >= WRITTEN_PAGES_FIRST)
        deployment.signal(PREFILL, signal.SIGSTOP)
        try:
            say("the writer is stopped in the middle of it, and the client leaves")
            moments = [watch.moment("the writer stands still, and the client leaves")]
            stream.close()
            watch.wait("decode puts the pages into quarantine", lambda: watch.quarantined > 0)
            moments.append(watch.moment("decode has put the pages into quarantine"))
            say("time passes, and frees nothing")
            until = time.monotonic() + STANDSTILL_SECONDS
            watch.wait("time passes", lambda: time.monotonic() > until)
            moments.append(watch.moment("time has passed, and has freed nothing"))
        finally:
            deployment.signal(PREFILL, signal.SIGCONT)
    finally:
        stream.close()
    say("the writer goes on, finishes what it had begun, and closes")
    watch.wait("the pages come home", lambda: watch.quarantined == 0)
    moments.append(watch.moment("the writer has closed, and the pages are free"))
    return moments


class _Watch:
    """Looks at the newest lease of a decode pool, by its figures and by its pages."""

    def __init__(self, deployment: Deployment, pool: PoolView) -> None:
        self.deployment, self._pool = deployment, pool
        self._started = time.monotonic()
        self._old = _newest(pool)

    def moment(self, what: str) -> Moment:
        """Write down how things are now."""
        metrics = self.deployment.client.metrics()
        return Moment(
            what=what,
            seconds=time.monotonic() - self._started,
            quarantined=int(metrics.total("kvfence_pool_pages", node=DECODE, state="quarantined")),
            free=int(metrics.total("kvfence_pool_pages", node=DECODE, state="free")),
            written=self.written,
        )

    def wait(self, what: str, accept: Callable[[], bool]) -> None:
        """Wait for something to be true. Raises InternalError when it does not come."""
        if not self.deployment.wait_until(accept, PATIENCE_SECONDS):
            raise InternalError(f"it did not happen that {what}: look at the logs of the deployment")

    @property
    def quarantined(self) -> int:
        """Quarantined pages of the decode pool."""
        return int(
            self.deployment.client.metrics().total("kvfence_pool_pages", node=DECODE, state="quarantined")
        )

    @property
    def written(self) -> int:
        """Pages that carry the seal of the lease that came after this watch began."""
        lease = _newest(self._pool)
        if lease is None or lease == self._old:
            return 0
        trailers = self._pool.trailers()
        mine = (trailers["sequence"] == lease.sequence) & (trailers["kind"] == SealKind.SEALED)
        return int(mine.sum())


def _newest(pool: PoolView) -> LeaseId | None:
    trailers = pool.trailers()
    named = trailers[trailers["kind"] != SealKind.BLANK]
    if not len(named):
        return None
    last = named[named["sequence"].argmax()]
    return LeaseId(int(last["incarnation"]), int(last["sequence"]))
