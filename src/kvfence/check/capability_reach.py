"""The first contact: is somebody there, does it let us in, which model is it, and how is it spoken to.

Rules it keeps:
- Nothing that a scenario does can be done before this has gone well; what stands in the way is raised as
  TargetUnreachable or CredentialsRefused, with the server's own words.
- Fields that a server may refuse are tried one at a time, so that a refusal without a name still says which.
- The model's name in the answers is learned here; another one later means that a gateway fell back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.client import is_named
from kvfence.check.probing import Probing, TargetUnreachable, is_absent, refuse_to_go_on, said_of
from kvfence.check.read_reply_parts import as_list, as_object, as_text
from kvfence.check.reply import Failure, Reply
from kvfence.check.tokens import json_of
from kvfence.protocol.errors import OperatorError

HELLO = "Say hello."
HELLO_TOKENS = 4
SHOWN_MODELS_MAX = 10


@dataclass(frozen=True, slots=True)
class Reached:
    """What the first contact gave. `models` are names that this server serves beside each other, if known."""

    model: str
    entry: Mapping[str, object]  # the model's entry in the list, empty where there is none
    models_reply: Reply
    endpoints: frozenset[Endpoint]
    hello: Reply
    streamed: Reply | None = None
    is_other_model: bool = False
    models: tuple[str, ...] = ()


async def reach(probing: Probing) -> Reached:
    """Make contact. Raises TargetUnreachable, CredentialsRefused, or OperatorError for a model not named."""
    client, target = probing.client, probing.target
    models_reply = await client.fetch(probing.tenant, target.address.models)
    if models_reply.status is None:
        refuse_to_go_on(models_reply, probing.tenant, target.shown)
    entries = listed_models(models_reply)
    wanted = choose_model(probing, list(entries))
    client.adopt(replace(client.manner, model=wanted))
    hello, endpoints = await _endpoints(probing)
    name = wanted or hello.model or "the only model"
    models = () if target.address.is_azure_deployment else tuple(entries)
    found = Reached(name, entries.get(name, {}), models_reply, endpoints, hello, models=models)
    if not _settle_names(probing, hello, wanted):
        return replace(found, is_other_model=True)
    await _optional_fields(probing)
    return replace(found, streamed=await _streaming(probing))


def listed_models(reply: Reply) -> dict[str, Mapping[str, object]]:
    """Return the entries of a list of models, by their names."""
    answer = json_of(reply)
    entries = [as_object(entry) for entry in as_list(answer.get("data")) or as_list(answer.get("models"))]
    named = ((as_text(entry.get("id")) or as_text(entry.get("name")), entry) for entry in entries)
    return {name: entry for name, entry in named if name is not None}


def choose_model(probing: Probing, listed: list[str]) -> str | None:
    """Return the model to ask: the one that the user names, or the only one that there is."""
    wanted = probing.target.model
    if probing.target.address.is_azure_deployment:
        return wanted  # the deployment is in the path; the list has every model of the account
    if wanted is not None:
        if listed and wanted not in listed:
            probing.note(f"the server lists {_some(listed)}, and not {wanted}; it is asked all the same")
        return wanted
    if len(listed) > 1:
        raise OperatorError(
            f"{probing.target.shown} serves {len(listed)} models, and a verdict is about one; name it with "
            f"--model or `model` in the profile: {_some(listed)}"
        )
    if listed:
        probing.say("model", listed[0], "the only one that the server lists")
        return listed[0]
    return None  # a server that serves one model and needs no name


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_MODELS_MAX])
    return f"{shown}, …" if len(names) > SHOWN_MODELS_MAX else shown


async def _endpoints(probing: Probing) -> tuple[Reply, frozenset[Endpoint]]:
    """Say hello at both endpoints; the one of the manner is the first that answers."""
    wanted = probing.target.endpoint
    order = [Endpoint.CHAT, Endpoint.COMPLETIONS]
    if wanted is Endpoint.COMPLETIONS:
        order.reverse()
    answered: dict[Endpoint, Reply] = {}
    failed: dict[Endpoint, Reply] = {}
    for endpoint in order:
        ask = Ask(
            prompt=HELLO,
            endpoint=endpoint,
            max_tokens=HELLO_TOKENS,
            temperature=None,
            is_streaming=False,
        )
        reply = await probing.teach(ask)
        where = probing.target.address.of(endpoint)
        if not answered and reply.failure is not Failure.OTHER_MODEL:
            refuse_to_go_on(reply, probing.tenant, where)
        (answered if reply.is_answer else failed)[endpoint] = reply
        probing.say(f"{endpoint.value}", reply.is_answer, f"a hello to {where}: {said_of(reply)}")
    if not answered or (wanted is not None and wanted not in answered):
        raise _nobody_answers(probing, failed, wanted or order[0])
    first = wanted or next(endpoint for endpoint in order if endpoint in answered)
    probing.client.adopt(replace(probing.client.manner, endpoint=first))
    probing.has_completions = Endpoint.COMPLETIONS in answered
    return answered[first], frozenset(answered)


def _nobody_answers(
    probing: Probing, failed: Mapping[Endpoint, Reply], wanted: Endpoint
) -> TargetUnreachable:
    """Say why neither endpoint can be used, by the reply that says most."""
    telling = next((reply for reply in failed.values() if not is_absent(reply)), failed[wanted])
    advice = "check the URL and the name of the model"
    if telling.failure is Failure.BUSY:
        advice = "it has no room for a request of a few tokens: try again later"
    elif telling.failure is Failure.REDIRECTED:
        advice = "give the URL that it leads to: redirects are not followed, since the key would go along"
    return TargetUnreachable(
        f"{probing.target.shown} does not answer the simplest request: {said_of(telling)}; {advice}"
    )


def _settle_names(probing: Probing, hello: Reply, wanted: str | None) -> bool:
    """Learn by which name the model answers; return whether it is the model that was asked for."""
    answered = hello.model
    own = probing.target.answers_as
    accepted = {name for name in (wanted, own) if name is not None}
    is_own = True
    if answered is not None and (wanted is None or probing.target.address.is_azure_deployment):
        accepted.add(answered)  # an Azure deployment is asked by its own name, and answers by the model's
    elif answered is not None and not is_named(answered, accepted):
        is_own = False
        probing.note(
            f"asked for {wanted}, the server answers as {answered}: a gateway fell back to another model, "
            f"and nothing that it answers counts; if {answered} is only another name of it, say so in the "
            "profile "
            f'(answers_as = "{answered}")',
            is_warning=True,
        )
    if accepted:
        how = "the name in its first answer" if answered else "asked for; its answers name none"
        probing.say("answers_as", answered or wanted, how)
    probing.client.adopt(replace(probing.client.manner, answers_as=frozenset(accepted)))
    return is_own


async def _optional_fields(probing: Probing) -> None:
    """Try what some models refuse, one at a time: the temperature, a seed, words of the system."""
    bare = Ask(prompt=HELLO, max_tokens=1, temperature=None, is_streaming=False)
    await _try_field(probing, replace(bare, temperature=0.0), "temperature")
    await _try_field(probing, replace(bare, seed=1), "seed")
    if probing.client.manner.endpoint is Endpoint.CHAT:
        reply = await probing.teach(replace(bare, system="You are brief."))
        folds = probing.client.manner.dialect.folds_system
        if not folds and reply.status in (400, 422):
            manner = probing.client.manner
            probing.client.adopt(replace(manner, dialect=replace(manner.dialect, folds_system=True)))
        probing.say("system_role", reply.is_answer and not folds, said_of(reply))


async def _try_field(probing: Probing, ask: Ask, name: str) -> None:
    reply = await probing.teach(ask)
    manner = probing.client.manner
    if reply.status in (400, 422) and name not in manner.dialect.left_out:
        # The same request went well without it, so it is this field, whatever the words are.
        dialect = replace(manner.dialect, left_out=manner.dialect.left_out | {name})
        probing.client.adopt(replace(manner, dialect=dialect))
    is_taken = name not in probing.client.manner.dialect.left_out
    probing.say(name, is_taken if reply.is_answer or not is_taken else None, said_of(reply))


async def _streaming(probing: Probing) -> Reply | None:
    ask = Ask(prompt=HELLO, max_tokens=HELLO_TOKENS)
    reply = await probing.teach(ask)
    manner = probing.client.manner
    if reply.failure is Failure.CUT and reply.status == 200 and reply.finish_reasons:
        # It came to its end and said so; this server sends no end mark.
        probing.client.adopt(replace(manner, dialect=replace(manner.dialect, sends_done=False)))
        probing.say(
            "end_mark", value=False, how="a whole stream came without [DONE]; its absence means nothing here"
        )
        reply = replace(reply, failure=None, message=None)
    has_streamed = reply.is_answer and reply.ttft_s is not None
    probing.say("streaming", has_streamed, said_of(reply))
    return reply if has_streamed else None
