"""One trial: tenant A leaves its secret in decode's pages, tenant B asks, and everything is looked at.

Acts 2 and 3 are trials of the same prompts against deployments that differ in their layers alone. What B
was answered, which words of A's are in it, what the nodes counted, and the page map: a trial states these
and leaves it to the acts what they mean.
"""

from dataclasses import dataclass

from kvfence.faults import Layer
from kvfence.protocol.errors import InternalError
from kvfence.protocol.words import RefusalCode
from kvfence.replay.client import Answer, Ask
from kvfence.replay.deployment import Deployment, Say
from kvfence.replay.page_map import Owner, PageMap, map_of_pool
from kvfence.replay.pool_view import PoolView
from kvfence.replay.scene import Play, Prompts, Scene

CALLER = 400
HOME_SECONDS_MAX = 30.0
# Figures of nodes travel with their hello, which follows an end at once.
FIGURES_SECONDS_MAX = 5.0
INTEGRITY_METRIC = "kvfence_integrity_failures_total"

# How each layer signs what it stopped: by the beginning of the reason that it counts.
SIGNATURES: dict[Layer, str] = {
    Layer.MANIFEST: "manifest_",
    Layer.SEAL: "seal_",
    Layer.GUARD: "guard_",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one trial. `alone` is the only layer that was on (None: none was, or nothing is broken).

    `sent_tokens` is the length of B's prompt; `honest` is one of A's answers, by which a prompt's honest time
    is known; `words` are A's words in B's answer; `reused_tokens` are those of a guessed prompt that came
    from the prefix cache; `reasons` are those for which a node refused pages.
    """

    alone: Layer | None
    command: str
    sent_tokens: int
    honest: Answer
    answer: Answer
    words: tuple[str, ...]
    reused_tokens: int
    reasons: tuple[str, ...]
    page_map: PageMap | None

    @property
    def foreign_read(self) -> int:
        """Slots of other tenants that steps attended over for B."""
        if self.page_map is None or not self.page_map.read_slots:
            return 0
        return self.page_map.count(Owner.OTHER)

    @property
    def leaked(self) -> bool:
        """Whether B was answered out of somebody else's pages."""
        return bool(self.words or self.reused_tokens) or (self.answer.is_whole and self.foreign_read > 0)

    @property
    def is_stopped(self) -> bool:
        """Whether the layer that was on refused the request, by its own sign, and nothing leaked."""
        if self.alone is None or self.leaked or self.answer.is_whole:
            return False
        if self.alone in (Layer.ADMISSION, Layer.REFUSAL):
            return self.answer.status == CALLER and self.answer.code == RefusalCode.CONTEXT_LENGTH.value
        sign = SIGNATURES[self.alone]
        return bool(self.reasons) and all(reason.startswith(sign) for reason in self.reasons)

    @property
    def honest_seconds(self) -> float:
        """How long a prompt of B's length takes to its first token, when it is computed: by A's pace."""
        seconds, tokens = self.honest.first_token_seconds, self.honest.prompt_tokens
        if seconds is None or not tokens:
            raise InternalError("tenant A's own request was not answered: look at the logs of the deployment")
        return seconds / tokens * self.sent_tokens


def run_trial(
    deployment: Deployment, play: Play, alone: Layer | None, say: Say, *, ask: Ask | None = None
) -> Trial:
    """Play A and B against a deployment that is ready. `ask` stands in for B's prompt."""
    prompts = play.prompts(deployment.count_tokens)
    asked = ask or prompts.b
    sent_tokens = deployment.count_tokens(asked.prompt)
    with PoolView.of_deployment(deployment.run_dir) as pool:
        # A fault in every hand-over spoils A's too, and a layer that is on refuses it; A's bytes stay behind.
        may_be_refused = play.scene is Scene.PLAIN and alone is not None
        honest = leave_secret(deployment, prompts, say, may_be_refused=may_be_refused)
        before = pool.snapshot()
        what = play.scene if ask is None else Scene.PLAIN
        say(f"tenant B sends {sent_tokens:,} tokens: {what.value}")
        answer = deployment.client.complete(asked)
        wait_home(deployment)
        reasons = _reasons(deployment, answer)
        # The last token of an answer is sampled and not read. Of a request that was refused, by the guard
        # too, no step was released.
        is_read = answer.is_whole and answer.prompt_tokens and answer.completion_tokens
        read = (answer.prompt_tokens or 0) + (answer.completion_tokens or 0) - 1 if is_read else 0
        page_map = map_of_pool(before, pool.snapshot(), prompt_tokens=sent_tokens, read_slots=read)
    is_guess = play.scene is Scene.GUESS and ask is None
    return Trial(
        alone=alone,
        command=deployment.command,
        sent_tokens=sent_tokens,
        honest=honest,
        answer=answer,
        words=play.secret.found_in(answer.text, prompt=asked.prompt),
        reused_tokens=(answer.cached_tokens or 0) if is_guess else 0,
        reasons=reasons,
        # What is guessed has the very bytes of A's: a map by bytes could not tell whose they are.
        page_map=None if is_guess else page_map,
    )


def leave_secret(
    deployment: Deployment, prompts: Prompts, say: Say, *, may_be_refused: bool = False
) -> Answer:
    """Tenant A: two requests that stand in the pool at once, and are gone. Returns the second's answer."""
    say("tenant A sends prompts that repeat its secret, and leaves")
    with deployment.client.stream(prompts.a_first) as first:
        if not first.wait_first() and not may_be_refused:
            raise InternalError("tenant A's first prompt was not served: look at the logs of the deployment")
        second = deployment.client.complete(prompts.a_second)
    if not second.is_whole and not may_be_refused:
        raise InternalError(f"tenant A was answered {second.status}: {second.message}")
    wait_home(deployment)
    return second


def wait_home(deployment: Deployment) -> None:
    """Wait until no lease is left on any node."""
    if not deployment.wait_until(
        lambda: not deployment.client.metrics().total("kvfence_leases"), HOME_SECONDS_MAX
    ):
        raise InternalError(
            "leases are left though every request has ended: look at the logs of the deployment"
        )


def _reasons(deployment: Deployment, answer: Answer) -> tuple[str, ...]:
    """Return what the nodes counted of refused pages; it is waited for where the answer speaks of some."""

    def raised() -> tuple[str, ...]:
        return deployment.client.metrics().raised(INTEGRITY_METRIC, "reason")

    if answer.code == "integrity":
        deployment.wait_until(lambda: bool(raised()), FIGURES_SECONDS_MAX)
    return raised()
