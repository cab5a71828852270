"""Each fault of the fake does its harm by mechanism, and the same traffic on a healthy server does none."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import httpx
import pytest
from tests.check.fake.faults import FAULTS, setup_for
from tests.check.fake.setup import Setup
from tests.check.fake.talk import talking
from tests.check.virtual import run

MARK = "zebra-violin-copper-lantern"
WORDS = ("ONE", "TWO", "THREE", "FOUR")
SMALL = {"pool_tokens": 8_192}
FILLER = "the cat sat on a mat and saw it rain "


def long_prompt(words, end="Reply ONLY: fine"):
    return FILLER * (words // 10) + end


async def fill(talk, *, rounds=12, words=1_000, tenant="a"):
    """Prompts full of A's marker, one after the other, that leave it all over the pool."""
    for at in range(rounds):
        await talk.ask(f"{at} " + f"{MARK} " * (words // 10) + f"Reply ONLY: {MARK}", tenant)


async def overlong(talk):
    await fill(talk)
    heard = await talk.ask(long_prompt(6_000), "b")
    return heard.status == 200 and MARK in heard.text and heard.usage["prompt_tokens"] > 6_000


async def overlong_answer(talk):
    heard = await talk.ask(f"The code word is {MARK}. " + long_prompt(6_000, "What is the code word?"), "b")
    return heard.status == 200 and heard.usage["prompt_tokens"] < 3_000


async def overlong_hang(talk):
    waiting = asyncio.ensure_future(talk.ask(long_prompt(6_000), "b"))
    await asyncio.sleep(1)
    other = asyncio.ensure_future(talk.ask("Reply ONLY: here", "a"))
    await asyncio.sleep(60)
    is_stuck = not waiting.done() and not other.done()
    waiting.cancel()
    assert (await other).text == "here"  # it ends when that client gives up
    return is_stuck


async def overlong_crash(talk):
    with suppress(httpx.TransportError):
        await talk.ask(long_prompt(6_000), "b", max_tokens=None)
    try:
        return (await talk.ask("Reply ONLY: here")).text != "here"
    except httpx.ConnectError:
        return True


async def parallel(talk):
    """Four one-word tasks at once, several times."""
    for _ in range(12):
        heard = await asyncio.gather(*(talk.ask(f"Reply ONLY: {word}", word) for word in WORDS))
        if [answer.text for answer in heard] != list(WORDS):
            return True
    return False


async def sentences(talk):
    """Answers of unequal length at once: rows leave the batch at different times."""
    for at in range(6):
        wanted = [
            f"{word} {at} " + " ".join(str(n) for n in range(2 + 3 * at * i)) for i, word in enumerate(WORDS)
        ]
        heard = await asyncio.gather(
            *(talk.ask(f"Reply ONLY: {one}", one[0], max_tokens=90) for one in wanted)
        )
        if any(answer.text.strip() != one.strip() for answer, one in zip(heard, wanted, strict=True)):
            return True
    return False


async def limits(talk):
    heard = await asyncio.gather(
        *(talk.ask("Count from 1 to 900", max_tokens=8 * (1 + at)) for at in range(4))
    )
    return any(answer.usage["completion_tokens"] > 8 * (1 + at) for at, answer in enumerate(heard))


async def twins(talk):
    alone = (await talk.ask("Tell a tale of rain.")).text
    heard = await asyncio.gather(*(talk.ask("Tell a tale of rain.") for _ in range(8)))
    return any(answer.text != alone for answer in heard)


async def aborted(talk):
    """Long prefills that are cancelled, and short prompts that take their pages."""
    for at in range(12):
        leaving = f"{at} " + f"{MARK} " * 450 + f"Reply ONLY: {MARK}"
        await talk.hang_up(leaving, "a", after_s=0.25)
        heard = await asyncio.gather(*(talk.ask(f"{n} " + long_prompt(500), "b") for n in range(12)))
        if any(answer.text != "fine" for answer in heard) or talk.server.engine.foreign_reads:
            return True
    return False


async def churn(talk):
    """Requests that stop early beside others that arrive when their pages are free."""
    for at in range(20):
        short = [talk.ask(f"Reply ONLY: {MARK} {at} {n}", "a") for n in range(6)]
        new = [late(talk, 0.02 * n, f"{at} {n} Tell a tale of rain.", "b") for n in range(16)]
        await asyncio.gather(*short, *new)
    return talk.server.engine.pool.foreign_writes > 0


async def late(talk, seconds, *words):
    await asyncio.sleep(seconds)
    return await talk.ask(*words)


async def short_transfer(talk):
    await fill(talk, rounds=20)
    for at in range(16):
        prompts = [f"{n} " + FILLER * 20 + "rain " * at + "Reply ONLY: mine" for n in range(3)]
        heard = await asyncio.gather(*(talk.ask(prompt, "b") for prompt in prompts))
        if any(answer.text != "mine" for answer in heard):
            return talk.server.engine.foreign_reads > 0
    return False


async def expired(talk):
    """A hand-off that is brought back when its lease is over and its pages are another's."""
    kept = await talk.ask(
        "Reply ONLY: mine", "b", max_tokens=1, kv_transfer_params={"do_remote_decode": True}
    )
    await asyncio.sleep(60)
    await fill(talk, rounds=14)
    heard = await talk.ask("Reply ONLY: mine", "b", kv_transfer_params=kept.data["kv_transfer_params"])
    return heard.status == 200 and any(word in heard.text for word in MARK.split("-"))


async def first_words(talk):
    heard = await asyncio.gather(*(talk.ask(f"Reply ONLY: {word} and more", word) for word in WORDS))
    return any(not answer.text.startswith(word) for answer, word in zip(heard, WORDS, strict=True))


async def same_id(talk):
    headers = {"x-request-id": "same"}
    heard = await asyncio.gather(*(talk.ask(f"Reply ONLY: {word}", word, headers=headers) for word in WORDS))
    return [answer.text for answer in heard] != list(WORDS)


async def reuse(talk):
    prompt = f"{MARK} " + long_prompt(400)
    await talk.ask(prompt, "a")
    other = await talk.ask(prompt, "b")
    again = await talk.ask(prompt, "a")
    assert again.usage["prompt_tokens_details"]["cached_tokens"] > 0
    return other.usage["prompt_tokens_details"]["cached_tokens"] > 0


async def reuse_by_time(talk):
    prompt = f"{MARK} " + long_prompt(4_000)
    cold = await talk.ask(prompt, "a")
    other = await talk.ask(prompt, "b")
    assert other.usage["prompt_tokens_details"]["cached_tokens"] == 0
    return other.seconds < cold.seconds / 2


async def short_keys(talk):
    for at in range(400):
        words = f"The code word is {at}. " + FILLER * 4
        heard = await talk.ask(f"{words} What is the code word?", "a" if at % 2 else "b")
        if heard.text != str(at):
            return True
    return False


async def early(talk):
    """A long prompt, and the same again before it is computed, in a pool that has seen others."""
    await fill(talk, rounds=20)
    prompt = FILLER * 300
    first = asyncio.ensure_future(talk.ask(prompt + "Reply ONLY: one", "b"))
    await asyncio.sleep(0.06)
    second = await talk.ask(prompt + "Reply ONLY: two", "b")
    await first
    del second
    return talk.server.engine.foreign_reads > 0


async def unpinned(talk):
    """A prefix that is used again while the pool is full of others."""
    prompt = FILLER * 200
    for at in range(4):
        await talk.ask(prompt + f"Reply ONLY: {at}", "b")
        crowd = [late(talk, 0.05 * (n > 5), f"{at} {n} " + f"{MARK} " * 120, "a") for n in range(16)]
        again = [late(talk, 0.1, prompt + f"Reply ONLY: {n}", "b") for n in range(6)]
        await asyncio.gather(*crowd, *again)
        if talk.server.engine.foreign_reads:
            return True
    return False


async def restored(talk):
    await talk.ask(f"Reply ONLY: {MARK}", "a")
    for _ in range(4):
        heard = await asyncio.gather(*(talk.ask(f"Reply ONLY: {word}", word) for word in WORDS))
        if any(MARK in answer.text for answer in heard):
            return all(answer.usage["prompt_tokens_details"]["cached_tokens"] == 0 for answer in heard)
    return False


async def tails(talk):
    await fill(talk, rounds=20)
    for at in range(20):
        heard = await talk.ask("rain " * at + "Reply ONLY: mine", "b")
        if "zebra" in heard.text or "violin" in heard.text or "lantern" in heard.text:
            return True
    return False


async def padded(talk):
    await fill(talk, rounds=8)
    for count in (9, 7, 6, 5, 3):
        await asyncio.gather(
            *(talk.ask(f"{n} Tell a tale of rain.", str(n), max_tokens=80) for n in range(count))
        )
    return talk.server.engine.pool.foreign_writes > 0


async def left_streams(talk):
    for word in WORDS:
        await talk.stream(f"Reply ONLY: {MARK} and {word}", "a", chunks_max=2)
        await asyncio.sleep(0.1)
        heard = await talk.ask(f"Reply ONLY: {word}", "b")
        if heard.text != word:
            return "lantern" in heard.text
    return False


async def identities(talk):
    """Pages of equal words after different words: a prefix that was computed after another one."""
    first, middle, last = "rain " * 31, "snow " * 32, "wind " * 40  # with a mark before them: whole pages
    await talk.ask(first + f"The code word is {MARK}. " + last, "a")
    await talk.ask(first + middle, "a")
    heard = await talk.ask(first + middle + last + "What is the code word?", "a")
    return MARK in heard.text


HARMS = {
    "rejected-continues/placeholder": (overlong, SMALL),
    "over-length/head-dropped": (overlong_answer, {}),
    "over-length/tail-dropped": (overlong_answer, {}),
    "over-length/hang": (overlong_hang, {}),
    "over-length/crash": (overlong_crash, {}),
    "over-length/crash-without-limit": (overlong_crash, {}),
    "transfer-outlives-pages/writer-goes-on": (aborted, SMALL | {"free_order": "last"}),
    "step-outlives-pages/late-step": (churn, {"pool_tokens": 2_048}),
    "false-completion/short-transfer": (short_transfer, SMALL),
    "stale-reference/expired-handoff": (expired, SMALL),
    "control-slot-reuse/first-token-slot": (first_words, {}),
    "id-collision/client-ids": (same_id, {}),
    "key-omits-identity/chain-dropped": (identities, {}),
    "key-collision/short-key": (short_keys, {}),
    "salt-dropped/one-domain": (reuse, {}),
    "shared-cache-timing/hidden-domain": (reuse_by_time, {}),
    "visible-before-written/published-early": (early, SMALL),
    "match-not-pinned/unpinned-match": (unpinned, {"pool_tokens": 8_192}),
    "offload-mixup/wrong-entry": (restored, {}),
    "unscrubbed-reuse/dirty-tail": (tails, SMALL),
    "padding-touches-live/page-zero": (padded, {"pool_tokens": 2_048}),
    "row-mixup/shifted-tables": (sentences, {}),
    "row-mixup/swapped-tokens": (parallel, {}),
    "row-mixup/foreign-limit": (limits, {}),
    "row-mixup/garbled-batch": (twins, {}),
    "response-misroute/newest-stream": (sentences, {}),
    "response-misroute/kept-rest": (left_streams, {}),
}


def harmed(setup, traffic):
    async def go():
        async with talking(setup) as talk:
            return await traffic(talk)

    return run(go())


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_does_harm(name):
    traffic, sizes = HARMS[name]
    assert harmed(setup_for(name, Setup(), **sizes), traffic)


@pytest.mark.parametrize("name", FAULTS)
def test_without_it_nothing_happens(name):
    traffic, sizes = HARMS[name]
    if traffic is reuse_by_time:
        pytest.skip("it asks what only that fault hides")
    assert not harmed(replace(setup_for(name, Setup(), **sizes), faults=()), traffic)
