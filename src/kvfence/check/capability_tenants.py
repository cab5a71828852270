"""Whether two credentials are two tenants: because the user says so, or because a control shows it.

Rules it keeps:
- Two keys prove nothing by themselves: they may be two keys of one account.
- Controls that show it: the server names the account of each key in a header, differently; or one key's
  prefixes are cached for itself every time and for the other never.
- That nothing shows it is no finding: it is said, and scenarios with two tenants then need the user's word.
"""

from collections.abc import Awaitable, Callable

from kvfence.check.asks import Ask
from kvfence.check.coresidence import HIT_SHARE, TEXT_TOKENS
from kvfence.check.probing import Probing, refuse_to_go_on, said_of
from kvfence.check.reply import Reply
from kvfence.check.tokens import words_of

ROUNDS = 3
# Headers by which a server names the account that a key belongs to.
_ACCOUNTS = ("openai-organization", "openai-project", "x-tenant-id", "x-account-id", "x-team-id", "x-user-id")

Control = Callable[[Probing, str, str], Awaitable[str | None]]


async def are_two_tenants(probing: Probing, *, controls: tuple[Control, ...] | None = None) -> bool:
    """Whether the target's first two credentials are two tenants. Raises CredentialsRefused for the second.

    `controls` are tried in order; each returns what shows it, or None. Others than ours may be given.
    """
    names = probing.client.tenants
    if len(names) < 2:
        probing.say("two_tenants", value=False, how="there is one credential")
        return False
    first, second = names[:2]
    for name in names[1:]:
        reply = await probing.ask(Ask(prompt="Say hello.", max_tokens=1, is_streaming=False), name)
        refuse_to_go_on(reply, name, probing.target.shown)
        probing.say(f"answers {name}", reply.is_answer, said_of(reply))
    if probing.target.has_two_tenants:
        probing.say("two_tenants", value=True, how="the user says so")
        return True
    for control in (by_account, by_cache) if controls is None else controls:
        shown = await control(probing, first, second)
        if shown is not None:
            probing.say("two_tenants", value=True, how=shown)
            return True
    probing.say(
        "two_tenants",
        value=False,
        how="there are two credentials, and nothing shows that they are two tenants",
    )
    return False


async def by_account(probing: Probing, first: str, second: str) -> str | None:
    """Compare the accounts that the answers name."""
    ask = Ask(prompt="Say hello.", max_tokens=1, is_streaming=False)
    one, other = _accounts(await probing.ask(ask, first)), _accounts(await probing.ask(ask, second))
    differing = [name for name in one if name in other and one[name] != other[name]]
    return f"the header {differing[0]} names two accounts" if differing else None


def _accounts(reply: Reply) -> dict[str, str]:
    return {name.lower(): value for name, value in reply.headers if name.lower() in _ACCOUNTS and value}


async def by_cache(probing: Probing, first: str, second: str) -> str | None:
    """See whether the first one's text is cached for itself every time, and for the second never."""
    for _ in range(ROUNDS):
        ask = Ask(prompt=words_of(TEXT_TOKENS, probing.rng), max_tokens=1)
        await probing.ask(ask, first)
        other = await probing.ask(ask, second)
        own = await probing.ask(ask, first)
        if _is_hit(own) is not True or _is_hit(other) is not False:
            return None
    return f"in {ROUNDS} of {ROUNDS} rounds {first}'s text was cached for {first} and not for {second}"


def _is_hit(reply: Reply) -> bool | None:
    cached, size = reply.usage.cached_tokens, reply.usage.prompt_tokens or TEXT_TOKENS
    return None if cached is None or not reply.is_answer else cached >= HIT_SHARE * size
