"""The named scopes."""

from kvfence.verification.scopes import Scope, Weather, ask, small

_ONE_PAGE = small(page_tokens=2, decode_pages=1, prefill_pages=1)
_TWO = (ask(1, "anna", 1, 1), ask(2, "berta", 1, 1))

SCOPES: dict[str, Scope] = {
    scope.name: scope
    for scope in (
        Scope(
            name="smoke",
            what="one page, two requests; a client leaves, a message is lost",
            asks=_TWO,
            kinds=((1, 2),),
            config=_ONE_PAGE,
            weather=Weather(leave=1, drop=1),
        ),
        Scope(
            name="crash-prefill",
            what="one page, two requests; the prefill node dies",
            asks=_TWO,
            kinds=((1, 2),),
            config=_ONE_PAGE,
            weather=Weather(crash_prefill=1),
        ),
    )
}
