"""The named scopes, from seconds to hours.

`TEST` is what `make test` visits, `FULL` what `make verify-full` does. Most scopes are small worlds in which
some kind of fault shows; on the correct protocol all of them close but those with a depth, and those in
`UNSEEN`, for whose end nobody has waited yet.
"""

from dataclasses import replace

from kvfence.verification.scopes import Scope, Weather, ask, small
from kvfence.world import Ask, Piece

# One page of two tokens, and one more to append to; two requests that are alike but for their tenants.
_ONE_PAGE = small(page_tokens=2, prefill_pages=1, decode_pages=1)
_TWO = (ask(1, "anna", 1, 1), ask(2, "berta", 1, 1))
_ALIKE = ((1, 2),)
# One page of four tokens: answers have a second token, which takes a step.
_FOUR_TOKENS = small(page_tokens=4, prefill_pages=1, decode_pages=1)
_STEPS = (ask(1, "anna", 1, 2), ask(2, "berta", 1, 2))
# Prompts of a full page and a partly filled one; a row grows into a third.
_THREE_PAGES = small(page_tokens=2, prefill_pages=3, decode_pages=3)
_LONG = (ask(1, "anna", 3, 2), ask(2, "berta", 3, 2))
_PREFIX = small(page_tokens=2, prefill_pages=4, decode_pages=3, chunk_tokens=2, has_prefix_cache=True)
# Two nodes of each kind, and three prompts of two tenants that begin alike.
_TWO_BY_TWO = small(
    prefills=2, decodes=2, page_tokens=2, prefill_pages=4, decode_pages=4, has_prefix_cache=True
)
_THREE = tuple(
    ask(request, tenant, 3, 2, shared=2) for request, tenant in enumerate(("anna", "berta", "anna"), 1)
)


def _one_page(name: str, what: str, weather: Weather) -> Scope:
    return Scope(name=name, what=what, asks=_TWO, kinds=_ALIKE, config=_ONE_PAGE, weather=weather)


_WEATHERS = (
    _one_page(
        "smoke", "one page, two requests; a client leaves, a message is lost", Weather(leave=1, drop=1)
    ),
    _one_page("leave", "one page, two requests; a client leaves", Weather(leave=1)),
    _one_page("late-writer", "one page; the writer's deadline passes too early", Weather(lease_timer=1)),
    _one_page("crash-prefill", "one page; the prefill node dies", Weather(crash_prefill=1)),
    _one_page("crash-decode", "one page; the decode node dies", Weather(crash_decode=1)),
    _one_page("crash-router", "one page; the router dies", Weather(crash_router=1)),
    _one_page("suspect", "one page; a living peer is taken for lost", Weather(suspect=1)),
    _one_page("pause", "one page; a node stands still", Weather(pause=1)),
    _one_page("no-proof", "one page; a batch is given up without proof", Weather(fail_loud=1)),
    _one_page("cut-fails", "one page; the writer dies, its cut fails", Weather(crash_prefill=1, cut_fails=1)),
    _one_page("stray", "one page; an executor speaks of what is no row", Weather(stray=1)),
    _one_page("repeat", "one page; a client leaves, a message comes twice", Weather(leave=1, repeat=1)),
    _one_page(
        "stale-timer", "one page; a client leaves, an old timer rings late", Weather(leave=1, stale_timer=1)
    ),
    _one_page(
        "timers",
        "one page; deadlines of writer and Close pass too early",
        Weather(lease_timer=1, close_retry_timer=2, leave=1),
    ),
    _one_page(
        "leave-crash", "one page; a client leaves, a prefill node dies", Weather(leave=1, crash_prefill=1)
    ),
    _one_page(
        "loss-crash", "one page; a message is lost, a prefill node dies", Weather(drop=1, crash_prefill=1)
    ),
)
# What takes minutes: two and three kinds of weather at once, and four.
_STORMS = (
    _one_page("leave-router", "one page; a client leaves, the router dies", Weather(leave=1, crash_router=1)),
    _one_page("loss-router", "one page; a message is lost, the router dies", Weather(drop=1, crash_router=1)),
    _one_page("crashes", "one page; prefill node and router die", Weather(crash_prefill=1, crash_router=1)),
    _one_page(
        "leave-loss-crash",
        "one page; a client leaves, a message is lost, the prefill node dies",
        Weather(leave=1, drop=1, crash_prefill=1),
    ),
    _one_page(
        "leave-loss-router",
        "one page; a client leaves, a message is lost, the router dies",
        Weather(leave=1, drop=1, crash_router=1),
    ),
    _one_page(
        "leave-crashes",
        "one page; a client leaves, prefill node and router die",
        Weather(leave=1, crash_prefill=1, crash_router=1),
    ),
    _one_page(
        "loss-crashes",
        "one page; a message is lost, prefill node and router die",
        Weather(drop=1, crash_prefill=1, crash_router=1),
    ),
    replace(
        _one_page(
            "one-page",
            "one page; prefill node and router die, a message is lost, a client leaves; not closed",
            Weather(leave=1, drop=1, crash_prefill=1, crash_router=1),
        ),
        depth=18,
    ),
)
_SHAPES = (
    Scope(
        name="sources",
        what="one source page, room for two on decode; a client leaves",
        asks=_TWO,
        kinds=_ALIKE,
        config=small(page_tokens=2, prefill_pages=1, decode_pages=3, quarantine_percent_max=100),
        weather=Weather(leave=1),
    ),
    Scope(
        name="steps",
        what="one page of four tokens, answers of two; a client leaves",
        asks=_STEPS,
        kinds=_ALIKE,
        config=_FOUR_TOKENS,
        weather=Weather(leave=1),
    ),
    Scope(
        name="pair",
        what="two requests side by side",
        asks=_STEPS,
        kinds=_ALIKE,
        config=small(page_tokens=4, prefill_pages=2, decode_pages=3),
    ),
    Scope(
        name="repeat-room",
        what="two requests with room for both, and for one of them twice; a message comes twice",
        asks=_TWO,
        kinds=_ALIKE,
        config=small(page_tokens=2, prefill_pages=2, decode_pages=3),
        weather=Weather(repeat=1),
    ),
    Scope(
        name="unused-slots",
        what="a prompt of two tokens, then one of one, in the same page",
        asks=(ask(1, "anna", 2, 1), ask(2, "berta", 1, 1)),
        config=_FOUR_TOKENS,
    ),
    Scope(
        name="poison",
        what="prompts of a full page, side by side on their writer; a client leaves, the writer dies",
        asks=(ask(1, "anna", 2, 2), ask(2, "berta", 2, 2)),
        kinds=_ALIKE,
        config=small(page_tokens=2, prefill_pages=2, decode_pages=2),
        weather=Weather(leave=1, crash_prefill=1),
        restarts=False,
    ),
    Scope(
        name="slow-batch",
        what="a batch passes its posting bound, one is given up, another one stopped",
        asks=(ask(1, "anna", 1, 3),),
        config=_FOUR_TOKENS,
        weather=Weather(batch_timer=1, fail_loud=1, fail_quiet=1),
    ),
    Scope(
        name="torn-batch",
        what="the same, with writes that land slot by slot",
        asks=(ask(1, "anna", 3, 2),),
        config=small(page_tokens=2, prefill_pages=3, decode_pages=3, piece=Piece.SLOT),
        weather=Weather(batch_timer=1, fail_loud=1, fail_quiet=1, leave=1),
    ),
    Scope(name="pages", what="prompts of two pages, one after the other", asks=_LONG, config=_THREE_PAGES),
    Scope(
        name="growth",
        what="two rows in one batch, which grow page by page",
        asks=(ask(1, "anna", 1, 4), ask(2, "berta", 1, 4)),
        config=small(page_tokens=1, prefill_pages=5, decode_pages=6, spare=0),
    ),
    Scope(
        name="limits",
        what="prompts below, at and above what the smaller pool holds, and a row that grows up to it",
        asks=(ask(1, "anna", 1, 3), ask(2, "berta", 3, 1), ask(3, "carla", 4, 1), ask(4, "dora", 5, 1)),
        config=small(page_tokens=2, prefill_pages=2, decode_pages=3),
    ),
)
_PREFIXES = (
    Scope(
        name="domains",
        what="two tenants whose prompts begin alike, with a prefix index",
        asks=(ask(1, "anna", 4, 1, shared=2), ask(2, "berta", 4, 1, shared=2)),
        config=_PREFIX,
    ),
    Scope(
        name="shared-prefix",
        what="two prompts of one tenant that begin alike; a client leaves",
        asks=(ask(1, "anna", 4, 1, shared=2), ask(2, "anna", 4, 1, shared=2)),
        config=_PREFIX,
        weather=Weather(leave=1),
    ),
    Scope(
        name="chain",
        what="a prompt begins with what stands in the middle of another one",
        asks=(Ask(1, "anna", (1, 2, 3, 4, 5), 1), Ask(2, "anna", (3, 4, 9), 1)),
        config=_PREFIX,
    ),
    Scope(
        name="collision",
        what="two prompts whose first pages have one key, where a key has one byte",
        asks=(Ask(1, "anna", (1, 2, 3, 4, 5), 1), Ask(2, "anna", (524, 525, 9), 1)),
        config=_PREFIX,
    ),
)
_DEEP = (
    Scope(
        name="two-by-two",
        what="two prefill and two decode nodes, three requests, four pages, two domains; not closed",
        asks=_THREE,
        config=_TWO_BY_TWO,
        weather=Weather(leave=1, crash_prefill=1, drop=1, fail_loud=1),
        depth=7,
    ),
    Scope(
        name="deep",
        what="the same in all weathers; not closed",
        asks=_THREE,
        config=_TWO_BY_TWO,
        weather=Weather(
            leave=1,
            drop=1,
            repeat=1,
            fail_loud=1,
            fail_quiet=1,
            cut_fails=1,
            crash_router=1,
            crash_prefill=1,
            crash_decode=1,
            pause=1,
            suspect=1,
            lease_timer=1,
            close_retry_timer=1,
            batch_timer=1,
        ),
        depth=6,
    ),
)

_SMALL = (*_WEATHERS, *_SHAPES, *_PREFIXES)
SCOPES: dict[str, Scope] = {scope.name: scope for scope in (*_SMALL, *_DEEP, *_STORMS)}
TEST = (*(scope.name for scope in _SMALL), "two-by-two")
FULL = (*TEST, *(scope.name for scope in _STORMS), "deep")
UNSEEN: tuple[str, ...] = ()
LISTS = {"test": TEST, "full": FULL}
