"""The probe learns what a server can do, says what it could not, and stops where nothing can be checked."""

import json
import random

import msgspec
import pytest
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.fake.variants import HEALTHY
from tests.check.to_fake import client_to, fake_target
from tests.check.virtual import run

from kvfence.check.capability import (
    PROBE_COST,
    CredentialsRefused,
    TargetError,
    TargetUnreachable,
    probe,
)
from kvfence.check.credentials import Redactor
from kvfence.check.known import Need
from kvfence.check.probing import PROBE_S_MAX
from kvfence.check.target import simple_target
from kvfence.protocol.errors import OperatorError
from kvfence.report import CapabilityLearned, Noted

# The user says the others.
ALL = frozenset(Need) - {Need.OWN_SERVER, Need.HOOK}
TWO = ("a", "b")


class Probed:
    """A probe of one fake: what is known, what was said, and what it took."""

    def __init__(self, *names, server=None, target=None, **setup):
        self.events = []
        self.server = server or FakeServer(Setup(**setup))
        self.target = target or fake_target(*(names or TWO))
        self.client = client_to(self.server, self.target)

    async def go(self, *, is_brief=False):
        rng = random.Random(5)
        self.known = await probe(self.client, self.target, self.events.append, rng=rng, is_brief=is_brief)
        await self.client.aclose()

    @property
    def learned(self):
        return {event.name: event.value for event in self.events if isinstance(event, CapabilityLearned)}

    @property
    def how(self):
        return {event.name: event.how for event in self.events if isinstance(event, CapabilityLearned)}

    @property
    def warnings(self):
        return [event.text for event in self.events if isinstance(event, Noted) and event.is_warning]


def probed(*names, **settings):
    found = Probed(*names, **settings)
    run(found.go())
    return found


def test_a_server_that_can_do_everything():
    found = probed()
    known = found.known
    assert known.has == ALL
    assert (known.model, known.models) == ("toy-1", ("toy-1",))
    assert (known.context_tokens, known.context_from) == (8_192, "`max_model_len` in the list of models")
    assert (known.counter.how, known.counter.error) == ("tokenize", 0.0)
    assert known.co_residence == 1.0
    assert known.short_ttft_s > 0
    assert not known.is_loopback
    assert found.learned["two_tenants"] is True
    assert "3 of 3 rounds" in found.how["two_tenants"]
    assert found.warnings == []


def test_every_name_in_the_list_is_known():
    target = fake_target("a", model="toy-1")
    assert probed(target=target, adapters=("toy-1-legal",)).known.models == ("toy-1", "toy-1-legal")


def test_a_probe_is_tiny_and_ordinary():
    found = probed()
    assert found.server.requests <= PROBE_COST.requests
    assert max(event.at_s for event in found.events) < PROBE_COST.seconds


def test_a_brief_probe_asks_less_and_says_what_it_left_out():
    whole = probed("a", target=fake_target("a", url="http://127.0.0.1"))
    brief = Probed("a", target=fake_target("a", url="http://127.0.0.1"))
    run(brief.go(is_brief=True))
    assert brief.server.requests < 0.7 * whole.server.requests
    for name in ("logprobs", "echo", "token_ids", "obeys", "co_residence"):
        assert "short one" in brief.how[name]
    assert brief.known.has < whole.known.has
    assert brief.known.context_tokens == whole.known.context_tokens


def test_events_come_in_order_as_things_are_learned():
    times = [event.at_s for event in probed().events]
    assert times == sorted(times)
    assert times[0] < times[-1]


LACKS = {
    "no-prefix-cache": {Need.CACHED_TOKENS, Need.TWO_TENANTS},
    "counts-hidden": {Need.CACHED_TOKENS, Need.TWO_TENANTS},
    "rounding": set(),
    "disobedient": set(),
    "bare": {
        Need.COMPLETIONS,
        Need.LOGPROBS,
        Need.CACHED_TOKENS,
        Need.TWO_TENANTS,
        Need.TOKEN_IDS,
    },
}
# What depends on how well a model obeys, or on luck, is not asserted of models that obey badly.
_LUCK = {Need.OBEDIENCE, Need.DETERMINISM}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_servers_of_every_kind(name):
    known = probed(server=FakeServer(HEALTHY[name])).known
    assert known.has | _LUCK == (ALL - LACKS.get(name, set())) | _LUCK
    assert known.context_tokens == HEALTHY[name].context_tokens


def test_what_is_missing_is_said():
    found = probed(server=FakeServer(HEALTHY["bare"]))
    assert found.learned["logprobs"] is False
    assert found.learned["completions"] is False
    assert found.learned["cached_tokens"] is False
    assert found.learned["co_residence"] is None
    assert "do not count cached tokens" in found.how["co_residence"]
    assert found.learned["token_counting"] == "usage"
    assert found.how["context_tokens"].startswith("a refusal in the words of ")


def test_a_dialect_is_learned_once_each_and_spoken_from_then_on():
    found = probed(only_max_completion_tokens=True, takes_temperature=False)
    said = [event.value for event in found.events if getattr(event, "name", "") == "dialect"]
    assert said == ["`max_completion_tokens` in place of `max_tokens`", "without `temperature`"]
    assert found.client.manner.dialect.answer_limit == "max_completion_tokens"
    assert found.learned["temperature"] is False
    assert Need.STREAMING in found.known.has


def test_bytes_are_the_last_resort_and_said_so():
    found = probed(has_tokenize=False, has_usage=False)
    assert (found.known.counter.how, found.known.counter.error) == ("bytes", 0.2)
    assert "within 20 %" in found.how["token_counting"]
    assert Need.USAGE not in found.known.has


def test_a_context_that_nobody_names_is_unknown():
    class Silent(FakeServer):
        async def handle(self, request):
            answer = await super().handle(request)
            return answer if answer.status == 200 else type(answer)(400, b'{"error": "no"}', {})

    found = probed(server=Silent(Setup(advertises=False)))
    assert found.known.context_tokens is None
    assert Need.CONTEXT not in found.known.has
    assert found.learned["context_tokens"] is None


def test_one_credential_is_one_tenant():
    found = probed("a")
    assert Need.TWO_TENANTS not in found.known.has
    assert found.how["two_tenants"] == "there is one credential"


def test_two_credentials_of_one_account_are_not_two_tenants():
    found = probed(keys={"key-a": "same", "key-b": "same"})
    assert Need.TWO_TENANTS not in found.known.has
    assert "nothing shows that they are two tenants" in found.how["two_tenants"]


def test_the_users_word_is_enough():
    target = fake_target(*TWO, has_two_tenants=True)
    found = probed(target=target, keys={"key-a": "same", "key-b": "same"})
    assert Need.TWO_TENANTS in found.known.has
    assert found.how["two_tenants"] == "the user says so"


def test_an_own_server_and_its_address():
    known = probed(
        target=fake_target(
            url="http://127.0.0.1:9",
            is_own_server=True,
            nodes=("http://127.0.0.1:8/v1",),
            hook=("break-it",),
            lease_s=9,
        )
    ).known
    assert Need.OWN_SERVER in known.has
    assert known.is_loopback
    assert known.nodes == ("http://127.0.0.1:8/v1",)
    assert known.hook == ("break-it",)
    assert known.lease_s == 9
    assert Need.HOOK in known.has


@pytest.mark.parametrize(
    ("misbehaviour", "said"),
    [
        ("429", "has no room for a request of a few tokens: try again later"),
        ("500", "500, server (Internal server error)"),
        ("html", "502, server (an HTML page: 502 Bad Gateway)"),
        ("html-200", "not json (an HTML page: 502 Bad Gateway)"),
        ("wrong-type", "not json (the answer is no JSON object (content type text/plain"),
        ("not-json", "200, not json"),
        ("413", "413, refused"),
    ],
)
def test_a_server_that_answers_nothing_useful_is_unreachable(misbehaviour, said):
    with pytest.raises(TargetUnreachable) as caught:
        probed(misbehaviours=(misbehaviour,))
    assert said in str(caught.value)


def test_nobody_there_is_unreachable():
    found = Probed(target=fake_target(url="http://fake"))
    found.client = client_to({}, found.target)
    with pytest.raises(
        TargetUnreachable, match=r"cannot be reached: connect .*Connection refused.*check the URL"
    ):
        run(found.go())


@pytest.mark.parametrize("settings", [{"keys": {"key-b": "b"}}, {"misbehaviours": ("403",)}])
def test_a_key_that_is_refused(settings):
    with pytest.raises(CredentialsRefused, match=r"refuses a with 40[13]") as caught:
        probed(**settings)
    assert "key-a" not in str(caught.value)
    assert isinstance(caught.value, TargetError)


def test_the_second_key_that_is_refused_is_named():
    with pytest.raises(CredentialsRefused, match="refuses b with 401"):
        probed(keys={"key-a": "a"})


def test_another_model_is_no_target():
    found = probed(misbehaviours=("falling-back",))
    assert found.known.has == frozenset()
    (warning,) = found.warnings
    assert "asked for toy-1, the server answers as toy-small: a gateway fell back" in warning
    assert found.client.manner.answers_as == {"toy-1"}, "all that follows is answered by another model"


def test_another_name_that_the_user_knows_of():
    found = probed(target=fake_target(*TWO, answers_as="toy-small"), misbehaviours=("falling-back",))
    assert Need.STREAMING in found.known.has
    assert found.warnings == []


def test_a_model_that_is_not_there():
    with pytest.raises(TargetUnreachable, match="does not answer the simplest request: 404"):
        probed(target=fake_target("a", model="toy-9"))


def test_several_models_want_a_name_unless_the_url_names_a_deployment():
    class Two(FakeServer):
        def _models(self):
            answer = super()._models()
            body = answer.body.replace(b'"data": [', b'"data": [{"id": "toy-2"}, ')
            return type(answer)(200, body, answer.headers)

    azure = "http://fake/openai/deployments/mine?api-version=2026-01-01"
    assert probed(server=Two(Setup()), target=fake_target("a", url=azure)).known.model == "toy-1"
    server = Two(Setup())
    with pytest.raises(OperatorError, match=r"serves 2 models.*--model.*toy-2, toy-1"):
        probed(server=server)
    assert probed(server=server, target=fake_target("a", model="toy-1")).known.model == "toy-1"


def test_a_server_that_never_says_done():
    found = probed(misbehaviours=("no-done",))
    assert Need.STREAMING in found.known.has
    assert found.learned["end_mark"] is False
    assert not found.client.manner.dialect.sends_done


@pytest.mark.parametrize("misbehaviour", ["pings", "torn", "retrying-gateway"])
def test_odd_ways_that_do_no_harm(misbehaviour):
    assert probed(misbehaviours=(misbehaviour,)).known.has == ALL


@pytest.mark.parametrize("misbehaviour", ["cut", "error-event"])
def test_broken_streams_are_not_streaming(misbehaviour):
    found = probed(misbehaviours=(misbehaviour,))
    assert Need.STREAMING not in found.known.has
    assert found.learned["streaming"] is False


def test_a_slow_server_is_not_kept_busy_for_ever():
    found = probed(misbehaviours=("slow",))
    assert max(event.at_s for event in found.events) < PROBE_S_MAX + 8 * 60
    assert found.learned["obeys"] is None
    assert "180 s were over" in found.how["obeys"]
    assert found.known.counter.how == "bytes"
    assert Need.STREAMING in found.known.has


def test_warnings_of_the_target_are_said():
    found = probed(target=fake_target("a", warnings=("the key travels over plain http",)))
    assert found.warnings == ["the key travels over plain http"]


def test_no_key_is_in_anything_that_is_said():
    found = probed()
    assert not any("key-a" in repr(event) or "key-b" in repr(event) for event in found.events)


def test_a_server_that_repeats_keys_does_not_bring_them_into_reports():
    class Repeating(FakeServer):
        async def handle(self, request):
            answer = await super().handle(request)
            if answer.status == 200:
                return answer
            key = request.headers["authorization"].removeprefix("Bearer ")
            body = json.dumps(
                {"error": {"message": f"key {key} may not", "code": key, "param": key}}
            ).encode()
            return type(answer)(answer.status, body, {"x-key": key})

    keys = {"KEY_A": "sk-first-key", "KEY_B": "sk-second-key"}
    redactor = Redactor()
    target = simple_target("http://fake", key_names=list(keys), environ=keys, redactor=redactor)
    found = Probed(server=Repeating(Setup(advertises=False, has_completions=False)), target=target)
    found.client = client_to(found.server, target, redactor=redactor)
    run(found.go())
    said = b"".join(msgspec.json.encode(event) for event in found.events).decode()
    assert "key [redacted] may not" in said, "the server was heard"
    assert not any(key in said for key in keys.values())
