"""The capability probe: what a target can do, learned by ordinary and tiny requests before any scenario.

Rules it keeps:
- What is not known is not hoped for: a need is met only where it was seen to be, and what could not be
  learned is said.
- It raises where nothing can be checked: TargetUnreachable and CredentialsRefused (exit code 4), or
  OperatorError for a model that the user has to name.
- Afterwards the client speaks the target's dialect, and does not change it any more.
"""

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.capability_context import Bounds, advertised_in, limit_in
from kvfence.check.capability_engine import engine_of
from kvfence.check.capability_reach import Reached, reach
from kvfence.check.capability_tenants import are_two_tenants
from kvfence.check.capability_traits import has_echo, has_logprobs, obeys, takes_ids, timing
from kvfence.check.client import ProbingClient
from kvfence.check.coresidence import settle
from kvfence.check.known import Known, Need, TokenCounter
from kvfence.check.probing import (
    CredentialsRefused,
    Probing,
    TargetError,
    TargetUnreachable,
    said_of,
)
from kvfence.check.read_reply_parts import as_count, as_object
from kvfence.check.target import Target
from kvfence.check.tokens import by_bytes, json_of, learn_counter
from kvfence.report import AnyEvent, Cost

ENORMOUS_TOKENS = 100_000_000
ENORMOUS_WAIT_S = 10.0
# From here on an error of one word in a thousand is more than the margins of a test at the limit.
LONG_CONTEXT_TOKENS = 32_768
# What the shortest profile can do without.
NOT_IN_BRIEF = frozenset(("logprobs", "echo", "token_ids", "obeys"))
# What the probe uses at most, for the plan: it is the same for every target.
PROBE_COST = Cost(requests=90, prompt_tokens=16_000, completion_tokens=500, seconds=60.0)

__all__ = ["PROBE_COST", "CredentialsRefused", "TargetError", "TargetUnreachable", "probe"]


async def probe(
    client: ProbingClient,
    target: Target,
    emit: Callable[[AnyEvent], None],
    *,
    rng: random.Random | None = None,
    is_brief: bool = False,
) -> Known:
    """Learn what there is to know, and say it as CapabilityLearned events.

    `is_brief` leaves out what the scenarios of the shortest profile can do without; their needs stay unmet.

    `rng` draws the probe's texts; without one they are new each time, so that no cache of the server knows
    them from an earlier run.
    """
    probing = Probing(
        client=client,
        target=target,
        emit=emit,
        rng=rng or random.Random(secrets.randbits(64)),  # noqa: S311 -- texts, no secrets
        began_s=asyncio.get_running_loop().time(),
    )
    for warning in target.warnings:
        probing.note(warning, is_warning=True)
    reached = await reach(probing)
    if reached.is_other_model:
        why = "another model answers in its place: a gateway has fallen back"
        return Known(model=reached.model, has=frozenset(), counter=by_bytes(), untestable=why)
    return await _Steps(probing, reached, is_brief=is_brief).go()


class _Steps:
    """The steps after the first contact, each of which a probe that is late leaves out."""

    def __init__(self, probing: Probing, reached: Reached, *, is_brief: bool) -> None:
        self._probing = probing
        self._is_brief = is_brief
        self._reached = reached
        self._has = {need for need, is_met in _plain_needs(probing.target, reached).items() if is_met}

    async def go(self) -> Known:
        """Learn the rest."""
        probing, reached = self._probing, self._reached
        engine = _engine(probing, reached)
        await self._need(Need.LOGPROBS, "logprobs", has_logprobs)
        if Endpoint.COMPLETIONS in reached.endpoints:
            await self._need(None, "echo", has_echo)
            await self._need(Need.TOKEN_IDS, "token_ids", takes_ids)
        context, context_from = await _context(probing, reached)
        self._add(Need.CONTEXT, is_met=context is not None)
        counter = await _counter(probing, context)
        residence = None if self._leaves_out("co_residence") else await settle(probing)
        if residence is not None:
            probing.say("cached_tokens", residence.has_counts, "in the usage of repeated requests")
            self._add(Need.CACHED_TOKENS, is_met=residence.has_counts)
        await self._need(Need.TWO_TENANTS, "two_tenants", are_two_tenants)
        timed = (
            None if self._leaves_out("noise_floor_s") else await timing(probing, has_batch=not self._is_brief)
        )
        self._add(Need.DETERMINISM, is_met=timed is not None and timed.is_same)
        await self._need(Need.OBEDIENCE, "obeys", obeys)
        return Known(
            model=reached.model,
            has=frozenset(self._has),
            counter=counter,
            context_tokens=context,
            context_from=context_from,
            noise_floor_s=0.0 if timed is None else timed.noise_floor_s,
            short_ttft_s=0.0 if timed is None else timed.short_ttft_s,
            is_loopback=probing.target.is_here,
            engine=engine,
            nodes=probing.target.nodes,
            models=reached.models,
            hook=probing.target.hook or None,
            lease_s=probing.target.lease_s,
            patience=probing.target.patience,
            co_residence=None if residence is None else residence.share,
        )

    def _add(self, need: Need | None, *, is_met: bool) -> None:
        if need is not None and is_met:
            self._has.add(need)

    def _leaves_out(self, name: str) -> bool:
        """Whether a step is left out, said with its reason."""
        target = self._probing.target
        is_one_server = target.is_here and not target.nodes
        if self._probing.is_late:
            self._probing.say(name, None, f"not asked: the probe's {self._probing.s_max:g} s were over")
        elif self._is_brief and (name in NOT_IN_BRIEF or (name == "co_residence" and is_one_server)):
            self._probing.say(name, None, "not asked: the profile is a short one")
        else:
            return False
        return True

    async def _need(self, need: Need | None, name: str, step: Callable[[Probing], Awaitable[bool]]) -> None:
        if not self._leaves_out(name):
            self._add(need, is_met=await step(self._probing))


def _plain_needs(target: Target, reached: Reached) -> dict[Need, bool]:
    usage = (reached.streamed or reached.hello).usage
    return {
        Need.COMPLETIONS: Endpoint.COMPLETIONS in reached.endpoints,
        Need.STREAMING: reached.streamed is not None,
        Need.USAGE: usage.prompt_tokens is not None and usage.completion_tokens is not None,
        Need.OWN_SERVER: target.is_own_server,
        Need.HOOK: bool(target.hook),
    }


def _engine(probing: Probing, reached: Reached) -> str | None:
    usage = (reached.streamed or reached.hello).usage
    counted = usage.prompt_tokens is not None
    probing.say("usage", counted, "in a stream" if reached.streamed is not None else "in a whole answer")
    found = engine_of(reached.entry, reached.models_reply, reached.hello)
    if found is None:
        probing.say("engine", None, "neither the list of models nor the headers name one that is known")
        return None
    probing.say("engine", *found)
    return found[0]


async def _counter(probing: Probing, context: int | None) -> TokenCounter:
    if probing.is_late:
        probing.say("token_counting", "bytes", "not measured: the probe's time was over; right within 20 %")
        return by_bytes()
    is_long = context is None or context >= LONG_CONTEXT_TOKENS
    counter = await learn_counter(probing.client, probing.tenant, probing.rng, is_thorough=is_long)
    known = {
        "tokenize": "measured by the server's tokenize endpoint",
        "usage": "measured by the usage of prompts of known words",
        "bytes": "estimated: the server has no tokenize endpoint and counts no usage",
    }
    how = f"{known[counter.how]}; a sample was missed by {counter.error:.2%}"
    if counter.how == "bytes":
        how = f"{known['bytes']}; lengths are right within 20 %"
        probing.note("tokens are counted from bytes, within 20 %: lengths near a limit are not sharp")
    probing.say("token_counting", counter.how, how)
    return counter


async def _context(probing: Probing, reached: Reached) -> tuple[int | None, str | None]:
    """Return the context that is advertised, and where: the list of models, the engine, or a refusal."""
    found = advertised_in(reached.entry)
    where = None if found is None else f"`{found[1]}` in the list of models"
    tokens = None if found is None else found[0]
    if tokens is None and engine_of(reached.entry, reached.hello) == ("llama.cpp", "the header server"):
        tokens, where = await _llama_props(probing)
    if tokens is None and not probing.is_late:
        tokens, where = await _refused_limit(probing)
    probing.say("context_tokens", tokens, where or "neither the list of models nor a refusal names it")
    return tokens, where


async def _llama_props(probing: Probing) -> tuple[int | None, str | None]:
    reply = await probing.client.fetch(probing.tenant, f"{probing.client.address.root}/props")
    tokens = as_count(as_object(json_of(reply).get("default_generation_settings")).get("n_ctx"))
    return tokens or None, "n_ctx of a slot, in /props" if tokens else None


async def _refused_limit(probing: Probing) -> tuple[int | None, str | None]:
    """Ask for an enormous answer to a short prompt: most servers refuse it, and name their limit."""
    ask = Ask(
        prompt="Say hello.",
        max_tokens=ENORMOUS_TOKENS,
        timeout_s=ENORMOUS_WAIT_S,
        hang_up_after_chunks=1,  # whoever begins to answer is not kept busy with it
    )
    reply = await probing.ask(ask)
    words = " ".join([reply.message or "", *(text.text for text in reply.texts if text.place == "error")])
    limit = limit_in(words)
    if limit is None or limit.bounds is Bounds.ANSWER:
        probing.say("longest_answer_tokens", None if limit is None else limit.tokens, said_of(reply))
        return None, None
    return limit.tokens, f"a refusal in the words of {limit.form} ({limit.bounds.value})"
