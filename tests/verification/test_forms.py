"""Forms: what differs in behaviour differs in form, what does not is left out."""

from dataclasses import replace

import pytest
from tests.verification.walks import TWO, WEATHERS, scope_of, walk

from kvfence.protocol import events, hash_tokens
from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.words import (
    AttemptId,
    Done,
    End,
    EndReason,
    Failed,
    Failure,
    LeaseId,
    Manifest,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Refused,
    Role,
)
from kvfence.verification.engine import Engine
from kvfence.verification.forms import Content, put_message, put_page
from kvfence.verification.parts import Names, Sink
from kvfence.world import Page, Seal, Slot

ROUTER, PREFILL, DECODE = Peer("router0", 1), Peer("prefill0", 1), Peer("decode0", 1)
ATTEMPT, LEASE, REF = AttemptId(1, 1, 1), LeaseId(1, 1), PageRef(0, 1)
CONTENT = Content({ask.request: ask for ask in TWO})
MANIFEST = Manifest(LEASE, PREFILL, 1, 1, hash_tokens(TWO[0].prompt), TWO[0].token_at(1), 1)
MESSAGES = (
    events.Hello(DECODE, Role.DECODE, pool_tokens=4, free_pages=1),
    events.Reserved(DECODE, ATTEMPT, LEASE, (REF,)),
    events.ReserveRefused(DECODE, ATTEMPT, Refusal(RefusalCode.BUSY)),
    events.TokenMade(DECODE, ATTEMPT, 1),
    events.AttemptEnded(DECODE, ATTEMPT, End(EndReason.LENGTH)),
    events.Reserve(ROUTER, ATTEMPT, PREFILL, 1, 1, hash_tokens(TWO[0].prompt)),
    events.Abort(ROUTER, ATTEMPT),
    events.Closed(PREFILL, LEASE, Done(MANIFEST)),
    events.Closed(PREFILL, LEASE, Refused(Refusal(RefusalCode.BUSY))),
    events.Closed(PREFILL, LEASE, Failed(Failure.ABORTED)),
    events.Prefill(ROUTER, ATTEMPT, DECODE, LEASE, (REF,), TWO[0].prompt, "anna"),
    events.Close(DECODE, LEASE),
    events.LowestLive(DECODE, 1),
)


def form(put, *arguments):
    sink = Sink(FORM_NAMES)
    put(sink, *arguments)
    return sink.digest(), tuple(sink.names), tuple(sink.seqs), tuple(sink.bounds)


FORM_NAMES = Names(symmetric=True, numbered=False, kinds={1: 1, 2: 1})


def test_every_message_has_a_form_of_its_own():
    assert len({form(put_message, CONTENT, message) for message in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_the_sender_and_every_name_are_in_it(message):
    changed = [replace(message, sender=Peer(message.sender.node, 2))]
    for field, other in (("attempt", AttemptId(1, 2, 1)), ("lease", LeaseId(1, 2)), ("sequence", 2)):
        if hasattr(message, field):
            changed.append(replace(message, **{field: other}))
    mine = form(put_message, CONTENT, message)
    assert all(form(put_message, CONTENT, one) != mine for one in changed)


def test_what_is_written_for_people_is_left_out():
    said = [
        form(put_message, CONTENT, events.AttemptEnded(DECODE, ATTEMPT, End(EndReason.STOP, detail=detail)))
        for detail in ("", "because")
    ]
    assert said[0] == said[1]


def test_what_is_no_message_has_no_form():
    with pytest.raises(TypeError, match="is no message"):
        put_message(Sink(FORM_NAMES), CONTENT, events.Submitted(1, 1, 1))


def test_a_page_is_known_by_its_trailer_and_by_who_wrote_each_slot():
    mine = Slot(1, 0, LEASE)
    seal = Seal(LEASE, 1, 0, 1, ((1, 0), None))
    pages = [
        Page(None, (None, None)),
        Page(seal, (mine, None)),
        Page(seal, (None, None)),  # the digest says otherwise
        Page(seal._replace(digest=None), (mine, None)),
        Page(seal, (Slot(2, 0, LEASE), None)),
        Page(seal, (Slot(1, 0, LeaseId(1, 2)), None)),
        Page(seal, (Slot(1, 1, LEASE), None)),
    ]
    assert len({form(put_page, "decode0", 0, page) for page in pages}) == len(pages)


@pytest.mark.parametrize("weather", WEATHERS)
def test_a_core_that_is_copied_has_the_form_of_the_first(weather):
    engine = Engine(scope_of(WEATHERS[weather], is_wide=True), CORRECT)
    from kvfence.verification.forking import fork_core
    from kvfence.verification.forms_cores import put_node

    for _, _, new in walk(engine, 40, 2):
        for place in engine.layout.node.values():
            node = new[place].value
            if node is None:
                continue
            twin = replace(node, core=fork_core(node.core))
            sinks = [Sink(engine.parts.names) for _ in range(2)]
            for sink, one in zip(sinks, (node, twin), strict=True):
                put_node(sink, engine.maker.content, one)
            assert sinks[0].digest() == sinks[1].digest()
            assert sinks[0].names == sinks[1].names
