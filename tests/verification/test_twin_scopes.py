"""The bounds that are said to the twin and those that are said to the cores are the same bounds."""

import pytest

from kvfence.protocol.words import LeaseId, Peer, Timer, TimerKind
from kvfence.verification.twin_scopes import TWIN_SCOPES
from kvfence.world import happenings as h

SCOPES = {scope.name: scope for scope in TWIN_SCOPES}
ROUTER, DECODE = Peer("router0", 1), Peer("decode0", 1)
LEASE = h.Fire(DECODE, Timer(TimerKind.LEASE, LeaseId(1, 1)))
QUEUE = h.Fire(ROUTER, Timer(TimerKind.QUEUE, 1))
RETRY = h.Fire(DECODE, Timer(TimerKind.CLOSE_RETRY, LeaseId(1, 1)))


@pytest.mark.parametrize("scope", TWIN_SCOPES, ids=lambda scope: scope.name)
def test_both_are_told_the_same_sizes(scope):
    told, cores = scope.constants("none"), scope.for_cores()
    config = cores.config
    assert int(told["Pages"]) == config.decode_pages + config.decode_spare_pages
    assert int(told["Usable"]) == config.decode_pages
    assert int(told["Sources"]) == config.prefill_pages
    assert int(told["Retries"]) == config.router.retries_max
    assert int(told["Requests"]) == len(cores.asks)
    assert scope.leases == int(told["Requests"]) * int(told["Attempts"])
    for ask in cores.asks:
        assert len(ask.prompt) == int(told["Remote"]) * config.page_tokens - 1, (
            "the last page is partly filled"
        )
        assert ask.max_tokens == 2
    assert (told["Abort"] == "TRUE") == (cores.weather.leave >= len(cores.asks))
    assert (told["Crash"] == "TRUE") == (cores.weather.crash_prefill == 1)
    assert not cores.restarts


def test_only_timers_of_the_scope_fire():
    assert SCOPES["deadline"].admits(LEASE)
    assert not SCOPES["deadline"].admits(QUEUE)
    assert SCOPES["room"].admits(QUEUE)
    assert not any(scope.admits(RETRY) for scope in TWIN_SCOPES)


def test_hellos_are_left_out_and_deliveries_are_not():
    assert not SCOPES["room"].admits(h.Announce(DECODE, ROUTER))
    assert SCOPES["room"].admits(h.Deliver(DECODE, ROUTER))


def test_names_are_distinct():
    assert len(SCOPES) == len(TWIN_SCOPES)
