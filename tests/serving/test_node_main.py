"""The process of a node: its incarnation, its tie to the launcher, and the form of what it logs."""

import os
import subprocess
import sys

from kvfence.serving.node_log import NodeLog
from kvfence.serving.node_main import INCARNATION_RANDOM_BITS, draw_incarnation

LOGGING_NODE = """
import logging, structlog, threading
from kvfence.serving.node_main import set_up_log

set_up_log("decode-0")
structlog.get_logger().info("all is well")
structlog.get_logger().warning("writer cut", peer="prefill-0")
threading.Thread(target=structlog.get_logger().error, args=("from a thread",)).start()
logging.getLogger("kvfence.transport").info("nothing to tell")
logging.getLogger("kvfence.transport").warning("a page connection ended: %s", "it was cut")
try:
    raise LookupError("why")
except LookupError:
    logging.getLogger("others").exception("it broke")
"""


def test_a_later_start_has_a_greater_incarnation():
    first = draw_incarnation()
    assert draw_incarnation() >> INCARNATION_RANDOM_BITS >= first >> INCARNATION_RANDOM_BITS
    assert first < 1 << 64, "an incarnation fits the seal"


def test_two_starts_at_one_moment_are_told_apart(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 10**18)
    assert len({draw_incarnation() for _ in range(8)}) > 1


def test_a_node_without_its_launcher_does_not_start():
    program = "from kvfence.serving.node_main import die_with; die_with(1 << 22)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "the launcher of this node is gone" in ended.stderr


def test_a_node_is_tied_to_a_launcher_that_lives():
    program = f"from kvfence.serving.node_main import die_with; die_with({os.getpid()})"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_everything_that_is_logged_has_one_form_in_which_the_launcher_finds_warnings(tmp_path):
    ended = subprocess.run([sys.executable, "-c", LOGGING_NODE], capture_output=True, text=True, check=True)
    path = tmp_path / "decode-0.log"
    path.write_text(ended.stderr)
    shown = NodeLog("decode-0", path).warnings()
    assert shown[0] == "decode-0: event='writer cut' peer='prefill-0'"
    broken, *others = sorted(shown[1:], key=lambda line: "it broke" not in line)
    assert broken.startswith("decode-0: event='it broke' exception='Traceback")
    assert sorted(others) == [
        "decode-0: event='a page connection ended: it was cut'",
        "decode-0: event='from a thread'",
    ]
    assert len(shown) == 4
    assert all("node='decode-0'" in line for line in ended.stderr.splitlines())
