"""Steps of the probe ask once in each dialect, and know what ends a run."""

import random

import pytest
from tests.check.to_fake import fake_client, fake_target
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.probing import (
    CredentialsRefused,
    Probing,
    TargetUnreachable,
    is_absent,
    refuse_to_go_on,
    said_of,
)
from kvfence.check.reply import Failure, Reply


def probing_of(client, emit=lambda _event: None):
    return Probing(client=client, target=fake_target("a"), emit=emit, rng=random.Random(1), began_s=0.0)


def test_a_lesson_is_said_and_the_question_put_again():
    async def go():
        client, server = fake_client("a", takes_temperature=False)
        reply = await probing_of(client, said.append).teach(Ask(prompt="hi", temperature=0.0, max_tokens=1))
        return reply, server.requests

    said = []
    reply, requests = run(go())
    assert reply.is_answer
    assert requests == 2
    assert [event.value for event in said] == ["without `temperature`"]
    assert said[0].how.startswith("without `temperature`; the server said: ")


def test_a_refusal_that_teaches_nothing_is_not_asked_again():
    async def go():
        client, server = fake_client("a")
        reply = await probing_of(client).teach(Ask(prompt="hi", max_tokens=100_000_000))
        return reply, server.requests

    reply, requests = run(go())
    assert reply.failure is Failure.REFUSED
    assert requests == 1


def test_asks_of_a_probe_are_marked_and_bounded():
    sent = []

    class Spy:
        tenants = ("a",)

        async def ask(self, tenant, ask):
            sent.append((tenant, ask))
            return Reply(status=200)

    run(probing_of(Spy()).ask(Ask(prompt="hi", timeout_s=1_000)))
    ((tenant, ask),) = sent
    assert (tenant, ask.mark, ask.timeout_s) == ("a", "capability", 60.0)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=401, failure=Failure.REFUSED, message="bad key"), CredentialsRefused),
        (Reply(status=403, failure=Failure.REFUSED), CredentialsRefused),
        (Reply(status=None, failure=Failure.CONNECT, message="refused"), TargetUnreachable),
        (Reply(status=None, failure=Failure.TLS, message="certificate"), TargetUnreachable),
        (Reply(status=None, failure=Failure.TIMEOUT), TargetUnreachable),
    ],
)
def test_what_ends_a_run(reply, error):
    with pytest.raises(error, match="http://h"):
        refuse_to_go_on(reply, "a", "http://h")


@pytest.mark.parametrize("status", [200, 400, 404, 429, 500])
def test_what_does_not(status):
    refuse_to_go_on(Reply(status=status), "a", "http://h")


def test_replies_in_words():
    assert said_of(Reply(status=200)) == "status 200"
    assert (
        said_of(Reply(status=404, failure=Failure.REFUSED, message="not\nfound"))
        == "404, refused (not found)"
    )
    assert said_of(Reply(status=None, failure=Failure.TIMEOUT)) == "timeout"
    assert is_absent(Reply(status=404, failure=Failure.REFUSED))
    assert not is_absent(Reply(status=400, failure=Failure.REFUSED))
