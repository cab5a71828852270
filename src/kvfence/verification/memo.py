"""What a happening does, remembered by the parts that it looked at.

For each happening there is a tree: a node names the part that is looked at next (or the one question that is
asked of it), its branches are the answers, a leaf is the effect. A happening is a function of what it looks
at, in order, so the path to a leaf is all that its effect depends on.
"""

from itertools import pairwise
from typing import Any, cast

from kvfence.protocol.errors import invariant
from kvfence.protocol.words import Peer
from kvfence.verification.parts import Part
from kvfence.verification.remembered import Question, owns_page
from kvfence.world import Finding


class Effect:
    """What is different afterwards: parts that are replaced, messages that were said, what was found.

    `unserved` is a finding where no weather was: a client that was sent away.
    """

    __slots__ = ("findings", "sets", "spoken", "unserved")

    def __init__(
        self,
        sets: tuple[tuple[int, Part], ...],
        spoken: tuple[tuple[int, Peer, Peer, Part], ...],
        findings: tuple[Finding, ...],
        unserved: tuple[Finding, ...] = (),
    ) -> None:
        self.sets = sets
        self.spoken = spoken
        self.findings = findings
        self.unserved = unserved


class Look:
    """An inner node."""

    __slots__ = ("branches", "place", "question")

    def __init__(self, looked: int | Question) -> None:
        self.place = looked if isinstance(looked, int) else looked[0]
        self.question = None if isinstance(looked, int) else looked[1]
        self.branches: dict[Any, Look | Effect] = {}


class Root:
    """A happening, with all that is remembered of it."""

    __slots__ = ("happening", "message", "node")

    def __init__(self, happening: Any, message: Part | None) -> None:
        self.happening = happening
        self.message = message  # of a delivery
        self.node: Look | Effect | None = None

    def recall(self, state: tuple[Part, ...]) -> Effect | None:
        """The effect in this state, if it is known."""
        node = self.node
        while isinstance(node, Look):
            answer = (
                state[node.place] if node.question is None else owns_page(state[node.place], node.question)
            )
            node = node.branches.get(answer)
        return node

    def learn(self, seen: list[tuple[int | Question, object]], effect: Effect) -> None:
        """Remember an effect under what was looked at."""
        if not seen:
            self.node = effect
            return
        if self.node is None:
            self.node = Look(seen[0][0])
        node = self.node
        for (_, answer), (then, _) in pairwise(seen):
            node = _inner(node).branches.setdefault(answer, Look(then))
        _inner(node).branches[seen[-1][1]] = effect


def _inner(node: Look | Effect) -> Look:
    invariant(isinstance(node, Look), "a happening that did the same looks at the same next")
    return cast("Look", node)
