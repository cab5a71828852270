"""Everything that servers and gateways are known to do wrong, played by a fake: each is the reply that says so."""

from dataclasses import replace

import pytest
from tests.check.fake.misbehaviour import MISBEHAVIOURS
from tests.check.to_fake import fake_client
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.reply import Failure

ASK = Ask(prompt="Reply ONLY: garden", max_tokens=8, timeout_s=30)
REPLIES = {
    "slow": (None, Failure.TIMEOUT),
    "429": (429, Failure.BUSY),
    "500": (500, Failure.SERVER),
    "403": (403, Failure.REFUSED),
    "413": (413, Failure.REFUSED),
    "html": (502, Failure.SERVER),
    "html-200": (200, Failure.NOT_JSON),
    "wrong-type": (200, Failure.NOT_JSON),
    "not-json": (200, Failure.NOT_JSON),
    "cut": (200, Failure.CUT),
    "no-done": (200, Failure.CUT),
    "error-event": (200, Failure.ERROR_EVENT),
    "pings": (200, None),
    "torn": (200, None),
    "retrying-gateway": (200, None),
    "falling-back": (200, Failure.OTHER_MODEL),
}


def asked(ask=ASK, **setup):
    async def go():
        client, server = fake_client("a", **setup)
        client.adopt(replace(client.manner, model="toy-1", answers_as=frozenset({"toy-1"})))
        reply = await client.ask("a", ask)
        await client.aclose()
        return reply, server.requests

    return run(go())


def test_every_misbehaviour_of_the_fake_is_here():
    assert set(REPLIES) == set(MISBEHAVIOURS)


@pytest.mark.parametrize("name", REPLIES)
def test_each_is_the_reply_that_says_so(name):
    # An answer of several tokens, so that a stream can break within it.
    long = replace(ASK, prompt="Count from 1 to 20", max_tokens=20)
    reply, requests = asked(long, misbehaviours=(name,))
    assert (reply.status, reply.failure) == REPLIES[name]
    assert requests <= 1
    if reply.failure is not None:
        assert reply.message


@pytest.mark.parametrize("name", ["pings", "torn"])
def test_what_does_no_harm_changes_nothing(name):
    assert asked(misbehaviours=(name,))[0].content.strip() == asked()[0].content.strip() == "garden"


def test_usage_that_is_missing_is_none():
    reply, _ = asked(has_usage=False)
    assert reply.is_answer
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens) == (None, None)
