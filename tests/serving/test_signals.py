"""Signals wake a selector and are counted."""

import os
import select
import signal

from kvfence.serving.signals import SignalCounter


def readable(counter) -> bool:
    return bool(select.select([counter], [], [], 0)[0])


def test_signals_are_counted_and_wake_until_cleared():
    before = signal.getsignal(signal.SIGINT)
    with SignalCounter() as counter:
        assert not readable(counter)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert counter.seen == [signal.SIGINT, signal.SIGTERM]
        assert readable(counter)
        counter.clear()
        counter.clear()
        assert not readable(counter)
        os.kill(os.getpid(), signal.SIGTERM)
        assert readable(counter)
        assert len(counter.seen) == 3
    assert signal.getsignal(signal.SIGINT) is before
