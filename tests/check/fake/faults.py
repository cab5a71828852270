"""The fake's faults by name: each gets one rule wrong. The first half of a name is its root-cause class.

`over-length/*` are no leaks: what else servers do with a prompt that does not fit. `setup_for` says which
sizes a fault needs to have its chance.
"""

from dataclasses import replace

from tests.check.fake.clock import Clock
from tests.check.fake.rules import Overlong, Rules
from tests.check.fake.setup import Setup


def _overlong(what, **more):
    def overlong(self, max_tokens):
        return what

    return type(f"Overlong{what.name.title()}", (Rules,), {"overlong": overlong, **more})


class CrashWithoutLimit(Rules):
    def overlong(self, max_tokens):
        return Overlong.CRASH if max_tokens is None else Overlong.REFUSE


class ShortTransfer(Rules):
    """Beside others, the last page of every third prompt is never sent, and done is said all the same."""

    def pages_posted(self, number, pages, live):
        return pages - 1 if number % 3 == 0 and live > 1 else pages


class WriterGoesOn(Rules):
    def writer_stops(self):
        return False


class LateStep(Rules):
    def late_steps(self):
        return 12


class StaleReference(Rules):
    def takes_reference(self, *, is_expired):
        return True


class OneSlot(Rules):
    def first_token_slot(self, number):
        return 0


class ClientIds(Rules):
    def key_of(self, number, client_id):
        return number if client_id is None else client_id


class OneDomain(Rules):
    def domain(self, tenant):
        return "everybody"


class HiddenDomain(OneDomain):
    def says_cached(self):
        return False


class ChainDropped(Rules):
    def chains(self):
        return False


class ShortKey(Rules):
    def key_bytes(self):
        return 1

    def compares_words(self):
        return False


class PublishedEarly(Rules):
    def publishes_early(self):
        return True


class UnpinnedMatch(Rules):
    def pins_match(self):
        return False


class WrongEntry(Rules):
    """Beside others, every third request gets the oldest conversation that was kept."""

    def restores(self, number, rows, kept):
        return 0 if rows > 1 and kept and number % 3 == 0 else None


class DirtyTail(Rules):
    def attended(self, slots, page_tokens):
        return -(-slots // page_tokens) * page_tokens


class PageZero(Rules):
    def pads_over_page_zero(self):
        return True


class ShiftedTables(Rules):
    """After some rows have left, tables are one off, until more have."""

    def table_row(self, row, rows, left):
        return row + 1 if left % 8 >= 3 and rows > 1 else row


class SwappedTokens(Rules):
    def sampled_row(self, row, rows):
        return row ^ 1 if (row ^ 1) < rows else row


class ForeignLimit(Rules):
    def limit_row(self, row, rows):
        return row + 1


class GarbledBatch(Rules):
    def garbles(self, rows):
        return rows > 1


class NewestStream(Rules):
    def addressee(self, number, live):
        return max(live, default=number)


class KeptRest(Rules):
    def keeps_rest(self):
        return True


FAULTS = {
    "rejected-continues/placeholder": _overlong(Overlong.PLACEHOLDER),
    "over-length/head-dropped": _overlong(Overlong.KEEP_TAIL),
    "over-length/tail-dropped": _overlong(Overlong.KEEP_HEAD),
    "over-length/hang": _overlong(Overlong.WAIT),
    "over-length/crash": _overlong(Overlong.CRASH),
    "over-length/crash-without-limit": CrashWithoutLimit,
    "transfer-outlives-pages/writer-goes-on": WriterGoesOn,
    "step-outlives-pages/late-step": LateStep,
    "false-completion/short-transfer": ShortTransfer,
    "stale-reference/expired-handoff": StaleReference,
    "control-slot-reuse/first-token-slot": OneSlot,
    "id-collision/client-ids": ClientIds,
    "key-omits-identity/chain-dropped": ChainDropped,
    "key-collision/short-key": ShortKey,
    "salt-dropped/one-domain": OneDomain,
    "shared-cache-timing/hidden-domain": HiddenDomain,
    "visible-before-written/published-early": PublishedEarly,
    "match-not-pinned/unpinned-match": UnpinnedMatch,
    "offload-mixup/wrong-entry": WrongEntry,
    "unscrubbed-reuse/dirty-tail": DirtyTail,
    "padding-touches-live/page-zero": PageZero,
    "row-mixup/shifted-tables": ShiftedTables,
    "row-mixup/swapped-tokens": SwappedTokens,
    "row-mixup/foreign-limit": ForeignLimit,
    "row-mixup/garbled-batch": GarbledBatch,
    "response-misroute/newest-stream": NewestStream,
    "response-misroute/kept-rest": KeptRest,
}
_BAND = {"prefill_tokens": 5_312}
# Pages that were given back are taken again at once, so that what stood in them is met.
_CROWDED = {"context_tokens": 4_096, "pool_tokens": 4_096, "free_order": "last"}
_SLOW = Clock(b_s=5e-4)
_NEEDS: dict[str, dict[str, object]] = {
    "rejected-continues/placeholder": _BAND | {"pool_tokens": 12_288},
    "over-length/head-dropped": _BAND,
    "over-length/tail-dropped": _BAND,
    "over-length/hang": _BAND,
    "over-length/crash": _BAND,
    "over-length/crash-without-limit": _BAND,
    "transfer-outlives-pages/writer-goes-on": _CROWDED | {"clock": _SLOW},
    "step-outlives-pages/late-step": _CROWDED | {"pool_tokens": 8_192, "preempts": True},
    "false-completion/short-transfer": _CROWDED,
    "stale-reference/expired-handoff": _CROWDED | {"control_fields": "accept"},
    "visible-before-written/published-early": _CROWDED | {"clock": _SLOW},
    "key-omits-identity/chain-dropped": {"adapters": ("toy-1-legal",)},
    "match-not-pinned/unpinned-match": {"context_tokens": 2_048, "pool_tokens": 2_048},
    "unscrubbed-reuse/dirty-tail": _CROWDED,
    "padding-touches-live/page-zero": _CROWDED | {"prefix_cache": False, "free_order": "lowest"},
}


def rules_for(names) -> Rules:
    """The rules with these faults on."""
    return type("Faulty", (*(FAULTS[name] for name in sorted(set(names))), Rules), {})()


def setup_for(name, base: Setup | None = None, **more) -> Setup:
    """A setup with one fault, of sizes with which it can show."""
    sized = {**_NEEDS.get(name, {}), "faults": (name,), **more}
    return replace(base or Setup(), **sized)


# Nothing foreign comes back with these: they show in counters, in times or in what is not refused.
EXPOSING = frozenset(
    (
        "key-omits-identity/chain-dropped",
        "salt-dropped/one-domain",
        "shared-cache-timing/hidden-domain",
        "stale-reference/expired-handoff",
        "id-collision/client-ids",
        "row-mixup/foreign-limit",
    )
)
