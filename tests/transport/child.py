"""A writer or a receiver in a process of its own, driven by lines, so that tests can kill and stop it.

    python child.py writer FACTORY ADDRESS INCARNATION PAGES   -> connected
    python child.py receiver FACTORY RUN_DIR INCARNATION PAGES -> ADDRESS

A writer obeys, one line each: `post BATCH PAGE PAGE …` (source page n goes to the n-th target), `go` (leave
the pause in mid-page), `poll`, `fork`, `destroy`, `end`. It says `half INDEX` when it pauses in mid-page.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.transport.conform_base import load_factory
from tests.transport.rig import DECODE, LAYOUT, SECRET, WRITER, batch_of

from kvfence.kv.pool import Pool
from kvfence.protocol.words import Peer
from kvfence.transport import WriteBatch


def say(text: str) -> None:
    """One line to the parent."""
    print(text, flush=True)


class Writer:
    """The commands of a writer."""

    def __init__(self, factory: str, address: str, incarnation: int, pages: int) -> None:
        self.released = threading.Event()
        self.source = Pool.create(LAYOUT, pages)
        for page in range(pages):
            self.source.page(page)[:] = page % 200 + 1
        self.writer: Any = load_factory(factory)(pause=self.pause).connect(
            address=address,
            me=Peer(WRITER.node, incarnation),
            target=DECODE,
            secret=SECRET,
            source_pool=self.source,
            wake=lambda: None,
        )
        say("connected")

    def pause(self, batch: WriteBatch, index: int) -> None:
        say(f"half {index}")
        self.released.wait()

    def obey(self, line: str) -> None:
        command, *words = line.split()
        if command == "post":
            batch, *targets = map(int, words)
            self.writer.post(batch_of(targets, batch=batch))
        elif command == "go":
            self.released.set()
        elif command == "poll":
            say(" ".join(type(done).__name__ for done in self.writer.poll()) or "nothing")
        elif command == "fork":
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            say(f"forked {child}")
        elif command == "destroy":
            say(str(self.writer.destroy()))


def run_receiver(factory: str, run_dir: str, incarnation: int, pages: int) -> None:
    """Listen until the parent says anything."""
    pool = Pool.create(LAYOUT, pages)
    receiver = load_factory(factory)().listen(
        pool=pool, me=Peer(DECODE.node, incarnation), secret=SECRET, run_dir=Path(run_dir), wake=lambda: None
    )
    say(receiver.address)
    sys.stdin.readline()
    receiver.close()


def main() -> None:
    """Do what the command line says."""
    role, factory, where, incarnation, pages = sys.argv[1:]
    if role == "receiver":
        run_receiver(factory, where, int(incarnation), int(pages))
        return
    writer = Writer(factory, where, int(incarnation), int(pages))
    for line in sys.stdin:
        if line.strip() == "end":
            break
        writer.obey(line)
    writer.released.set()


if __name__ == "__main__":
    main()
