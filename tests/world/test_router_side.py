"""A router in a world: what clients hear is judged."""

import pytest
from tests.world.play import DECODE, ROUTER, ask, follow, submit_all, world_of

from kvfence.protocol import Decisions, commands, events
from kvfence.protocol.words import AttemptId, End, EndReason, Refusal, RefusalCode
from kvfence.world import Client, Kind

ATTEMPT = AttemptId(1, 1, 1)


def kinds(world):
    return [finding.kind for finding in world.findings]


@pytest.mark.parametrize(
    ("attempt", "position", "found"),
    [(ATTEMPT, 3, []), (ATTEMPT, 4, [Kind.WRONG_TOKEN]), (AttemptId(1, 2, 1), 3, [Kind.WRONG_TOKEN])],
)
def test_a_token_of_another_request_or_place_is_found(attempt, position, found):
    world = submit_all(world_of(ask(1), ask(2)))
    world._deliver_token(
        ROUTER, commands.DeliverToken(1, position), events.TokenMade(DECODE, attempt, position)
    )
    assert kinds(world) == found and world.clients[1] == Client(1)


@pytest.mark.parametrize("is_over", [False, True])
def test_a_token_in_its_place_but_after_the_end_is_found(is_over):
    world = submit_all(world_of(ask(1)))
    world.clients[1] = Client(0, End(EndReason.CLIENT_GONE) if is_over else None)
    world._deliver_token(ROUTER, commands.DeliverToken(1, 3), events.TokenMade(DECODE, ATTEMPT, 3))
    assert kinds(world) == ([Kind.WRONG_TOKEN] if is_over else [])


def test_an_end_is_told_once():
    world = follow(submit_all(world_of(ask(1))))
    end = End(EndReason.LENGTH)
    world._finish_request(ROUTER, commands.FinishRequest(1, end), events.AttemptEnded(DECODE, ATTEMPT, end))
    assert kinds(world) == [Kind.TWO_ENDS]


TOO_LONG = End(EndReason.REFUSED, refusal=Refusal(RefusalCode.CONTEXT_LENGTH, 9, 8))


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (events.Submitted(1, 3, 3), []),
        (events.AttemptEnded(DECODE, ATTEMPT, TOO_LONG), [Kind.BROKEN_PROMISE]),
    ],
)
def test_what_was_admitted_is_not_refused_for_its_length_later(event, found):
    world = world_of(ask(1))
    world._finish_request(ROUTER, commands.FinishRequest(1, TOO_LONG), event)
    assert kinds(world) == found


class NoAbort(Decisions):
    def aborts_before_next_attempt(self):
        return False


@pytest.mark.parametrize(("decisions", "found"), [(Decisions(), []), (NoAbort(), [Kind.TWO_ATTEMPTS])])
def test_a_new_attempt_before_the_abort_of_the_old_one_is_found(decisions, found):
    world = submit_all(
        world_of(ask(1, 3, 7), ask(2, 3, 7), decode_pages=5, decode_spare_pages=0, decisions=decisions)
    )
    follow(world)
    assert sorted(set(kinds(world)), key=str) == found
