"""A fake server behind uvicorn in a thread of its own, for commands that bring their own event loop."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import uvicorn
from tests.check.fake.server import FakeServer


@contextlib.contextmanager
def served(server: FakeServer) -> Iterator[str]:
    """Yield its address; it has stopped when this is left."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(server.app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(10)
        assert not thread.is_alive()
