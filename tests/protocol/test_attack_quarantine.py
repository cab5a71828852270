"""One client's leaving puts pages into quarantine for a moment: that ends nobody else's request."""

from kvfence.protocol import Decisions, RouterConfig, RouterCore, commands, events
from kvfence.protocol.words import (
    End,
    EndReason,
    LeaseId,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Role,
    Timer,
    TimerKind,
)

ROUTER, PREFILL, DECODE = Peer("router", 1), Peer("prefill-0", 2), Peer("decode-0", 3)
QUARANTINE = Refusal(RefusalCode.QUARANTINE)


def router():
    core = RouterCore(ROUTER, RouterConfig(context_tokens=64, page_tokens=4), Decisions())
    for peer, role in ((PREFILL, Role.PREFILL), (DECODE, Role.DECODE)):
        core.step(events.Hello(peer, role, 64, 16))
    return core


def said(out, kind):
    return [command for command in out if isinstance(command, kind)]


def reserved(out):
    (reserve,) = said(out, commands.SendReserve)
    return reserve.attempt


def hello(core, free_pages=16):
    return core.step(events.Hello(DECODE, Role.DECODE, 64, free_pages))


def test_a_request_waits_until_the_pages_are_home_and_does_not_ask_all_the_time():
    core = router()
    attempt = reserved(core.step(events.Submitted(1, 8, 4)))
    out = core.step(events.ReserveRefused(DECODE, attempt, QUARANTINE))
    assert said(out, commands.FinishRequest) == said(out, commands.SendReserve) == []
    assert said(hello(core, free_pages=0), commands.SendReserve) == []
    assert reserved(hello(core)).number == 2


def test_its_wait_has_an_end():
    core = router()
    out = core.step(events.Submitted(1, 8, 4))
    core.step(events.ReserveRefused(DECODE, reserved(out), QUARANTINE))
    (timer,) = [t for t in said(out, commands.SetTimer) if t.timer.kind is TimerKind.QUEUE]
    (finish,) = said(
        core.step(events.Expired(Timer(TimerKind.QUEUE, 1), timer.generation)), commands.FinishRequest
    )
    assert (finish.end.reason, finish.end.refusal) == (EndReason.REFUSED, Refusal(RefusalCode.DEADLINE))


def test_one_that_was_refused_after_its_wait_hears_the_reason():
    core = router()
    out = core.step(events.Submitted(1, 8, 4))
    (timer,) = [t for t in said(out, commands.SetTimer) if t.timer.kind is TimerKind.QUEUE]
    core.step(events.Expired(Timer(TimerKind.QUEUE, 1), timer.generation))
    (finish,) = said(
        core.step(events.ReserveRefused(DECODE, reserved(out), QUARANTINE)), commands.FinishRequest
    )
    assert finish.end.refusal == QUARANTINE


def test_an_answer_that_was_begun_goes_on_after_it():
    core = router()
    attempt = reserved(core.step(events.Submitted(1, 8, 4)))
    core.step(events.Reserved(DECODE, attempt, LeaseId(3, 1), (PageRef(0, 1), PageRef(1, 1))))
    core.step(events.TokenMade(DECODE, attempt, 8))
    again = reserved(core.step(events.AttemptEnded(DECODE, attempt, End(EndReason.PREEMPTED))))
    assert core.step(events.ReserveRefused(DECODE, again, QUARANTINE)) != []
    third = reserved(hello(core))
    assert (third.request, third.number) == (1, 3)
