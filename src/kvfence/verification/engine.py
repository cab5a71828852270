"""One process's exploration: from a state to all that can follow.

A happening that was seen before, with all that it looked at the same, costs a few dictionary lookups; one
that was not is performed by the shipped cores in the world of `remembered.py` and learnt. Every distinct
core that comes out of a step is asked for the laws once.
"""

from collections.abc import Iterator

from kvfence.protocol import Decisions, RouterCore
from kvfence.protocol.words import EndReason, Peer
from kvfence.verification.canonical import key_function
from kvfence.verification.changes import Maker
from kvfence.verification.forms import Content
from kvfence.verification.layout import LIVING, Layout, State
from kvfence.verification.memo import Effect, Root
from kvfence.verification.moves import Move, Moves, PartMoves, still_writes
from kvfence.verification.parts import Names, Part, Parts
from kvfence.verification.remembered import RememberedWorld, Taken
from kvfence.verification.scopes import Scope
from kvfence.world import Core, Finding, InPlace, Kind, make_world
from kvfence.world import happenings as h


class Engine:
    """States, moves and effects of one scope under some decisions."""

    def __init__(self, scope: Scope, decisions: Decisions, *, symmetric: bool = True) -> None:
        self.scope = scope
        self.decisions = decisions
        is_plain = _looks_at_pages(decisions)
        kinds = scope.kind_of() if symmetric else {}
        names = Names(
            symmetric=symmetric and not is_plain, numbered=_looks_at_numbers(decisions), kinds=kinds
        )
        asks = dict(scope.by_number)
        self.layout = Layout(scope.config, asks)
        self.parts = Parts(names)
        self.maker = Maker(self.layout, self.parts, Content(asks))
        self.moves = Moves(scope, self.layout, self.maker)
        self.key_of = key_function(self.layout)
        self.taken: set[Taken] = set()
        self.performed = 0  # happenings that were not remembered
        self._calm = self.maker.budget(scope.weather.counts())
        self._requests = frozenset(self.layout.request.values())
        self._base = make_world(scope.config, decisions, asks, InPlace())
        self._kinds = [sorted(group) for group in scope.kinds] if symmetric else []
        self._rank = {request: group[:place] for group in self._kinds for place, request in enumerate(group)}

    def start(self) -> State:
        """The state in which nodes know one another and nothing was asked."""
        return self.maker.state_of(self._base, self.scope.weather.counts())

    def core_is_home(self, core: Core) -> bool:
        """As the world says."""
        return self._base.core_is_home(core)

    def first_node(self) -> Peer:
        """A node to name where a whole state is meant."""
        return next(iter(self._base.cores))

    # ------------------------------------------------------------ what can happen
    def enabled(self, state: State) -> list[Move]:
        """Everything that can happen in a state, in an order that the state decides."""
        living = state[LIVING]
        groups = self._groups(state)
        paused = living.value.paused
        moves = [move for group in groups for move in group.following]
        if paused:
            moves = [move for move in moves if not move.stands_still(paused)]
        is_quiet = not moves
        left = state[-1].value
        for group in groups:
            moves += [move for move in group.timers if is_quiet or left[move.cost] > 0]
            moves += [move for move in group.weather if move.cost is None or left[move.cost] > 0]
            if is_quiet:
                moves += [move for move in group.calm if self._has_no_mail(state, move.happening.receiver)]
            if group.gone:
                moves += self._renewals(state, group)
        moves += self._clients(state, left)
        if paused:
            moves = [move for move in moves if not move.stands_still(paused)]
        return [move for move in moves if not move.is_hello or self._may_say(state, move)]

    def _groups(self, state: State) -> list[PartMoves]:
        layout, moves, living = self.layout, self.moves, state[LIVING]
        groups: list[PartMoves] = [living.moves or moves.of_living(living)]
        for place in layout.wires.values():
            part = state[place]
            if part.value:
                groups.append(part.moves or moves.of_wire(place, part))
        for place in layout.writes.values():
            part = state[place]
            if part.value:
                groups.append(part.moves or moves.of_writes(part))
        for place in layout.node.values():
            part = state[place]
            groups.append(part.moves or moves.of_node(part))
            groups.append(part.cache.get(living) or moves.of_pair(living, part))
        return groups

    def _clients(self, state: State, left: tuple[int, ...]) -> Iterator[Move]:
        living = state[LIVING]
        for request, place in self.layout.request.items():
            part = state[place]
            before = self._rank.get(request, ())
            if part.value[1] is None and any(state[self.layout.request[b]].value[1] is None for b in before):
                continue  # of requests that are alike the first comes first
            for move in self.moves.of_request(living, part):
                if move.cost is None or left[move.cost] > 0:
                    yield move

    def _renewals(self, state: State, group: PartMoves) -> Iterator[Move]:
        for writer, decode in group.gone:
            if still_writes(state[self.layout.node[decode.node]].value, decode, writer):
                renew = h.Reconnect(writer, decode)
                yield Move(renew, self.moves.root(renew), node=writer)

    def _may_say(self, state: State, move: Move) -> bool:
        """A hello is said where nothing else is under way: a second one would tell nothing more."""
        sender, receiver = move.happening
        return not state[self.layout.wires[sender.node, receiver.node]].value

    def _has_no_mail(self, state: State, router: Peer) -> bool:
        """A node that says that it has room is asked again, so that all that was asked before has arrived."""
        wires = self.layout.wires.items()
        return not any(state[place].value for (sender, _), place in wires if sender == router.node)

    # ------------------------------------------------------------ what follows from it
    def after(self, state: State, move: Move) -> tuple[State, tuple[Finding, ...]]:
        """The state after a move, and what was found on the way."""
        new = list(state)
        if move.rest is not None:
            new[move.place] = move.rest
        root = move.root
        findings: tuple[Finding, ...] = ()
        if root is not None:
            effect = root.recall(state) or self._perform(state, root)
            for place, part in effect.sets:
                new[place] = part
            for place, sender, receiver, message in effect.spoken:
                wire = new[place]
                new[place] = wire.cache.get((sender, receiver, message)) or self.moves.with_message(
                    wire, sender, receiver, message
                )
            findings = effect.findings
        if move.cost is not None and not (move.timer and state[-1].value[move.cost] == 0):
            new[-1] = self._spend(state, move.cost)
        elif root is not None and effect.unserved and state[-1] is self._calm and self._was_due(state, move):
            findings += effect.unserved
        return tuple(new), findings

    def _spend(self, state: State, cost: int) -> Part:
        part = state[-1]
        spent: Part | None = part.cache.get(cost)
        if spent is None:
            left = list(part.value)
            left[cost] -= 1
            spent = part.cache[cost] = self.maker.budget(tuple(left))
        return spent

    def _perform(self, state: State, root: Root) -> Effect:
        self.performed += 1
        world = RememberedWorld(self.layout, state, self._base)
        try:
            if root.message is not None:
                world.tell(root.happening.receiver, root.message.value)
            else:
                world.perform(root.happening)
        except Exception as error:  # noqa: BLE001 -- a core that breaks is what is looked for
            peer = next(part for part in root.happening if hasattr(part, "incarnation"))
            world.find(Kind.LAW, peer, f"the core broke: {type(error).__name__}: {error}")
            return Effect((), (), tuple(world.findings))
        self.taken |= world.taken
        for layer in world.catches:
            peer = next(part for part in root.happening if hasattr(part, "incarnation"))
            world.find(Kind.FENCE, peer, f"the {layer} spoke, where nothing should have been wrong")
        spoken = tuple(
            (self.layout.wires[s.node, r.node], s, r, self.maker.message(message))
            for s, r, message in world.spoken
        )
        sets = tuple(self.maker.changes(world))
        effect = Effect(sets, spoken, tuple(world.findings), tuple(self._unserved(state, world, sets)))
        root.learn(world.seen, effect)
        return effect

    def _was_due(self, state: State, move: Move) -> bool:
        """Whether nothing but a deadline was left: one that fires before a hello that is due is early."""
        return not move.timer or not any(other.is_hello for other in self.enabled(state))

    def _unserved(
        self, state: State, world: RememberedWorld, sets: tuple[tuple[int, Part], ...]
    ) -> Iterator[Finding]:
        """Clients that are sent away now, though every pool holds what they asked for.

        How a client ended is asked of the world: a part says only that it has.
        """
        pools = [core.pool_tokens for core in self._base.cores.values() if not isinstance(core, RouterCore)]
        limit = min(self.scope.config.router.context_tokens, *pools)
        clients = dict(world.lazy["clients"].held())
        for place, part in sets:
            if place not in self._requests:
                continue
            request, before = part.value[0], state[place].value[1]
            end = None if request not in clients else clients[request].end
            if end is None or (before is not None and before.end is not None):
                continue
            ask = self.scope.by_number[request]
            fits = len(ask.prompt) + ask.max_tokens <= limit
            if fits and end.reason not in (EndReason.STOP, EndReason.LENGTH):
                what = f"request {request} fits, and is sent away without any weather: {end.reason.value}"
                yield Finding(Kind.UNSERVED, self.first_node(), what)


def _looks_at_pages(decisions: Decisions) -> bool:
    """Whether page numbers are more than names for these decisions."""
    return type(decisions).padding_page is not Decisions.padding_page


def _looks_at_numbers(decisions: Decisions) -> bool:
    """Whether lease numbers are more than an order for these decisions."""
    return type(decisions).lease_number is not Decisions.lease_number
