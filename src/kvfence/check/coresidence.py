"""Whether two requests meet on the same pages at all: pinning where it can be done, an estimate where not.

A marker of A says nothing about a server on which B never lands where A was. `share` is how often the second
of two requests met what the first one left, taken from one tenant's own repeats: fresh text, then the same
text again, and the server's count of cached tokens.

Rules it keeps:
- Without counts of cached tokens, or with none that ever says a hit, the share is unknown, not zero.
- A router that sends equal beginnings to equal nodes makes repeats meet by design: the estimate is an upper
  bound there, and says so.
- Pinning is adopted only where it was seen to work, and then the nodes that are left out are named as unseen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvfence.check.asks import Ask
from kvfence.check.probing import Probing
from kvfence.check.reply import Reply
from kvfence.check.target import Target
from kvfence.check.tokens import words_of

ROUNDS = 4
MORE_ROUNDS = 6  # where the first ones did not all meet
PIN_ROUNDS = 4
TEXT_TOKENS = 160
HIT_SHARE = 0.5
SURE_SHARE = 0.9
CONFIDENCE = 0.95

# Headers by which routers are told where to send a request. Which worker is 0 is theirs to know: any one
# will do.
PINS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("the SGLang model gateway's X-SMG-Target-Worker", {"X-SMG-Target-Worker": "0"}),
    ("the data-parallel rank of vLLM and SGLang", {"X-data-parallel-rank": "0"}),
)
# Headers of an answer that name who served it.
_NODE_HEADERS = (
    "x-gateway-destination-endpoint-served",
    "x-worker-id",
    "x-served-by",
    "x-backend-server",
    "x-instance-id",
    "x-pod-name",
    "x-routed-to",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoResidence:
    """What is known of where requests land. `seen` are names of nodes that answers gave."""

    rounds: int
    hits: int
    has_counts: bool
    seen: frozenset[str] = frozenset()
    pinned_by: str | None = None

    @property
    def share(self) -> float | None:
        """How often a repeat met what was there, None where that cannot be told."""
        return self.hits / self.rounds if self.hits else None

    @property
    def at_least(self) -> float | None:
        """The lower 95 % bound of the share, by Clopper and Pearson."""
        return lower_bound(self.hits, self.rounds) if self.hits else None

    @property
    def how(self) -> str:
        """How it was learned, in a sentence's part."""
        if not self.has_counts:
            return "unknown: the answers do not count cached tokens"
        if not self.hits:
            return (
                f"unknown: none of {self.rounds} repeats was cached; there is no prefix cache, it wants "
                "longer prompts, or there are many nodes"
            )
        pinned = f", pinned by {self.pinned_by}" if self.pinned_by else ""
        return (
            f"{self.hits} of {self.rounds} repeats of one tenant were cached{pinned} "
            f"(at least {self.at_least:.0%}, at 95 %); a router that sends equal beginnings to equal nodes "
            "would make this too high"
        )


def lower_bound(hits: int, rounds: int) -> float:
    """Return the share that `hits` or more of `rounds` would show with a chance of 5 % only."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if _at_least(hits, rounds, middle) < 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return round(low, 4)


def _at_least(hits: int, rounds: int, share: float) -> float:
    """Return the chance of at least so many hits."""
    chance, term = 0.0, (1 - share) ** rounds
    if share >= 1:
        return 1.0
    for count in range(rounds + 1):
        if count >= hits:
            chance += term
        term *= (rounds - count) / (count + 1) * share / (1 - share)
    return chance


async def estimate(
    probing: Probing, *, rounds: int = ROUNDS, headers: Mapping[str, str] | None = None
) -> CoResidence:
    """Estimate from so many rounds of two requests each. `headers` pin them."""
    hits = 0
    has_counts = False
    replies: list[Reply] = []
    for _ in range(rounds):
        ask = Ask(
            prompt=words_of(TEXT_TOKENS, probing.rng),
            max_tokens=1,
            extra_headers=dict(headers or {}),
        )
        first, again = await probing.ask(ask), await probing.ask(ask)
        replies += [first, again]
        cached = again.usage.cached_tokens
        has_counts = has_counts or cached is not None
        size = again.usage.prompt_tokens or TEXT_TOKENS
        hits += again.is_answer and cached is not None and cached >= HIT_SHARE * size
    return CoResidence(rounds=rounds, hits=hits, has_counts=has_counts, seen=nodes_in(replies))


def nodes_in(replies: list[Reply]) -> frozenset[str]:
    """Return the names of nodes that answers give; a header that is new each time names requests."""
    for name in _NODE_HEADERS:
        values = [value for reply in replies for header, value in reply.headers if header.lower() == name]
        if values and (len(set(values)) < len(values) or len(values) == 1):
            return frozenset(values)
    return frozenset()


def together(one: CoResidence, other: CoResidence) -> CoResidence:
    """Return what two estimates say together."""
    return CoResidence(
        rounds=one.rounds + other.rounds,
        hits=one.hits + other.hits,
        has_counts=one.has_counts or other.has_counts,
        seen=one.seen | other.seen,
    )


async def settle(probing: Probing) -> CoResidence:
    """Estimate, and pin where requests do not meet by themselves and a known header makes them meet."""
    found = await estimate(probing)
    if found.has_counts and found.hits < found.rounds:
        found = together(found, await estimate(probing, rounds=MORE_ROUNDS))
    if found.share is None or found.share >= SURE_SHARE or probing.target.pin:
        return _told(probing, found)
    for name, headers in PINS:
        pinned = await estimate(probing, rounds=PIN_ROUNDS, headers=headers)
        if pinned.hits == PIN_ROUNDS:
            manner = probing.client.manner
            probing.client.adopt(replace(manner, headers={**manner.headers, **headers}))
            return _told(probing, replace(pinned, pinned_by=name, seen=pinned.seen | found.seen), found)
    return _told(probing, found)


def _told(probing: Probing, found: CoResidence, before: CoResidence | None = None) -> CoResidence:
    probing.say("co_residence", None if found.share is None else round(found.share, 3), found.how)
    left = unseen(probing.target, found, before)
    if left:
        probing.note(left)
    return found


def unseen(target: Target, found: CoResidence, before: CoResidence | None = None) -> str | None:
    """Say how many nodes this run does not see, None where nothing speaks for more than one."""
    if found.pinned_by is not None and before is not None and before.share:
        nodes = max(2, round(1 / before.share))
        return f"all requests go to one node of about {nodes}: the others go unseen in this run"
    if target.nodes:
        named = len(target.nodes)
        met = min(len(found.seen), named) or 1
        return f"{named - met} of {named} nodes of the profile went unseen" if met < named else None
    if found.share is not None and found.share < SURE_SHARE:
        return (
            f"there seem to be about {round(1 / found.share)} nodes, and two requests meet on one of them in "
            f"{found.share:.0%} of cases: each opportunity counts for that much; "
            "name a worker's own URL to pin"
        )
    return None
