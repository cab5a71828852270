"""The metrics of a watch, over a real socket."""

import httpx
import pytest

from kvfence.check.watch_metrics import MetricsServer
from kvfence.protocol.errors import OperatorError


def test_metrics_and_health_are_served_and_nothing_else():
    with MetricsServer("127.0.0.1", 0) as server:
        server.text = "kvfence_watch_up 1\n"
        base = f"http://127.0.0.1:{server.port}"
        with httpx.Client(trust_env=False) as client:
            metrics = client.get(f"{base}/metrics?x=1")
            assert (metrics.status_code, metrics.text) == (200, "kvfence_watch_up 1\n")
            assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
            assert client.get(f"{base}/health").text == "ok\n"
            assert client.get(f"{base}/other").status_code == 404


def test_an_address_that_is_taken_says_what_to_do():
    with (
        MetricsServer("127.0.0.1", 0) as server,
        pytest.raises(OperatorError, match="--listen"),
    ):
        MetricsServer("127.0.0.1", server.port)
