"""The fixtures that the parts of the conformance suite share."""

import gc
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.transport.rig import Factory, Rig


def load_factory(name: str) -> Factory:
    """Import `module:attribute`."""
    module, _, attribute = name.partition(":")
    factory: Factory = getattr(import_module(module), attribute)
    return factory


class Conformance:
    """A part of the suite; a subclass names the factory."""

    factory: ClassVar[str]

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A receiver and two pools; afterwards nothing of it may be left: thread, descriptor or file."""
        gc.collect()
        before = _threads_and_files()
        run_dir = tmp_path / "r"
        rig = Rig(load_factory(self.factory), run_dir)
        yield rig
        rig.close()
        del rig
        gc.collect()
        assert _threads_and_files() == before
        assert not run_dir.exists() or list(run_dir.iterdir()) == []


def _threads_and_files() -> tuple[Any, ...]:
    threads = sorted(thread.name for thread in threading.enumerate())
    return threads, len(list(Path("/proc/self/fd").iterdir()))
