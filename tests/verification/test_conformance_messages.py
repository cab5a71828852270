"""Who heard what from whom, and what a router owes its clients: silent on good runs, loud on others."""

from tests.verification.steps import DECODE, PLACE, PREFILL, ROUTER, lease, refs, step, take

from kvfence.protocol import commands, events
from kvfence.protocol.words import AttemptId, End, EndReason, Failed, Failure, Peer
from kvfence.verification.conformance_messages import MessageCheck
from kvfence.verification.conformance_requests import RequestCheck

ATTEMPT = AttemptId(1, 7, 1)
END = End(EndReason.LENGTH)
ANY = events.DrainRequested()
ALL = {ROUTER: True, PREFILL: True, DECODE: True}


def found(*steps, whole=None):
    check = MessageCheck()
    for one in steps:
        check.take(one)
    return [violation.why for violation in check.violations(ALL if whole is None else whole)]


def closes(*sequences):
    return [step(ANY, commands.SendClose(PREFILL, lease(sequence))) for sequence in sequences]


def hears(*sequences, sender=DECODE):
    return [step(events.Close(sender, lease(sequence)), peer=PREFILL) for sequence in sequences]


# One of each message, as it is sent and as it is received.
OUTCOME = Failed(Failure.ABORTED)
PAIRS = [
    (ROUTER, commands.SendReserve(DECODE, ATTEMPT, PREFILL, 8, 4), DECODE,
     events.Reserve(ROUTER, ATTEMPT, PREFILL, 8, 4, b"")),
    (ROUTER, commands.SendPrefill(PREFILL, ATTEMPT, DECODE, lease(), refs(1)), PREFILL,
     events.Prefill(ROUTER, ATTEMPT, DECODE, lease(), refs(1), (0,) * 8, "")),
    (ROUTER, commands.SendAbort(DECODE, ATTEMPT), DECODE, events.Abort(ROUTER, ATTEMPT)),
    (DECODE, commands.SendReserved(ROUTER, ATTEMPT, lease(), refs(1)), ROUTER,
     events.Reserved(DECODE, ATTEMPT, lease(), refs(1))),
    (DECODE, commands.SendEnded(ROUTER, ATTEMPT, END), ROUTER, events.AttemptEnded(DECODE, ATTEMPT, END)),
    (DECODE, commands.SendClose(PREFILL, lease()), PREFILL, events.Close(DECODE, lease())),
    (DECODE, commands.SendLowestLive(PREFILL, 2), PREFILL, events.LowestLive(DECODE, 2)),
    (PREFILL, commands.SendClosed(DECODE, lease(), OUTCOME), DECODE, events.Closed(PREFILL, lease(), OUTCOME)),
]  # fmt: skip


def test_every_message_that_was_sent_may_be_received():
    for sender, said, receiver, heard in PAIRS:
        assert found(step(ANY, said, peer=sender), step(heard, peer=receiver)) == []
        # The receiver's line may stand in the file before the sender's.
        assert found(step(heard, peer=receiver), step(ANY, said, peer=sender)) == []
        (why,) = found(step(heard, peer=receiver))
        assert type(heard).__name__ in why


def test_messages_may_be_lost_and_not_be_doubled_or_overtake_each_other():
    assert found(*closes(1, 2, 3), *hears(1, 3)) == []
    assert found(*closes(1, 1), *hears(1, 1)) == []
    assert found(*closes(1, 2), *hears(1, 2, 2)) == [
        "Close 3.2 came from decode-0/3, which did not send it then"
    ]
    assert found(*closes(1, 2), *hears(2, 1)) == [
        "Close 3.1 came from decode-0/3, which did not send it then"
    ]


def test_what_a_killed_node_sent_last_may_be_missing_in_its_trace():
    killed = {**ALL, DECODE: False}
    assert found(*closes(1), *hears(1, 2, 3), whole=killed) == []


def test_of_a_node_without_a_trace_nothing_is_said_but_that():
    check = MessageCheck()
    for one in hears(1):
        check.take(one)
    assert list(check.violations({PREFILL: True})) == []
    assert check.senders == {DECODE}


def test_tokens_come_of_attempts_that_their_sender_has_started():
    made = step(events.TokenMade(DECODE, ATTEMPT, 8), peer=ROUTER)
    start = commands.StartRow(lease(), ATTEMPT, None, (), None)
    assert found(step(ANY, start), made) == []
    assert found(made, made) == ["a token of attempt 1.7.1 came from decode-0/3, which never started it"]
    assert found(made, whole={**ALL, DECODE: False}) == []


def test_a_violation_names_the_line_that_received_it():
    check = MessageCheck()
    for one in hears(1):
        check.take(one)
    (violation,) = check.violations(ALL)
    assert (violation.place, violation.node, violation.kind.value) == (PLACE, "prefill-0", "message")


# ------------------------------------------------------------ a router's requests
SUBMITTED = step(events.Submitted(7, 8, 4), peer=ROUTER)
OTHER = Peer("prefill-1", 9)


def does(*said):
    return step(ANY, *said, peer=ROUTER)


def opens(number, writer=PREFILL):
    return commands.SendReserve(DECODE, AttemptId(1, 7, number), writer, 8, 4)


def aborts(*peers, number=1):
    return [commands.SendAbort(peer, AttemptId(1, 7, number)) for peer in peers]


def requests(*steps):
    return take(RequestCheck(), *steps)


def test_a_request_is_submitted_served_and_ended_once():
    finish = commands.FinishRequest(7, END)
    tokens = [commands.DeliverToken(7, position) for position in (8, 9)]
    good = [SUBMITTED, does(opens(1)), does(*tokens), does(finish)]
    assert requests(*good) == []
    assert requests(*good, does(finish)) == [("end", "request 7 ends and has ended before")]
    assert requests(does(finish)) == [("end", "request 7 ends and was never submitted")]
    assert requests(SUBMITTED, SUBMITTED) == [("end", "request 7 is submitted twice")]
    assert requests(*good, SUBMITTED) == [("end", "request 7 is submitted twice")]
    words = "request 7 is given a token, and is not open"
    assert requests(*good, does(commands.DeliverToken(7, 10))) == [("end", words)]
    words = "request 7 is given position 11 out of its order"
    assert requests(*good[:3], does(commands.DeliverToken(7, 11))) == [("end", words)]


def test_the_next_attempt_comes_after_the_abort_of_the_last_on_both_nodes():
    first = [SUBMITTED, does(opens(1))]
    assert requests(*first, does(*aborts(DECODE, PREFILL), opens(2))) == []
    words = "attempt 2 of request 7 is opened, and prefill-0 heard no abort"
    assert requests(*first, does(*aborts(DECODE), opens(2))) == [("end", words)]
    assert requests(*first, does(*aborts(DECODE, OTHER), *aborts(PREFILL, number=2), opens(2))) == [
        ("end", words)
    ]
    # After the first token its writer is done: only decode is left to be told.
    token = commands.DeliverToken(7, 8)
    assert requests(*first, does(token), does(*aborts(DECODE), opens(2, OTHER))) == []


def test_attempts_are_counted_and_belong_to_requests():
    assert requests(does(opens(1))) == [("end", "attempt 1 of request 7 is opened, and the request is not")]
    assert requests(SUBMITTED, does(opens(2))) == [("end", "attempt 2 of request 7 follows attempt 0")]
