"""A node that has lost one of its threads ends, so that it can be started again."""

import os
import subprocess
import sys

from kvfence.serving.progress import Failed, StatusReader

NODE = """
import sys, threading
from kvfence.serving.node_main import end_with_threads
from kvfence.serving.progress import StatusWriter

def run():
    if sys.argv[2] == "breaks":
        raise LookupError("nobody foresaw this")

end_with_threads(StatusWriter(int(sys.argv[1])))
threading.Thread(target=run, name="control-plane").start()
threading.Event().wait(0.5)  # the main thread goes on
"""


def outcome(behaviour):
    read_end, write_end = os.pipe()
    command = [sys.executable, "-c", NODE, str(write_end), behaviour]
    node = subprocess.run(command, pass_fds=(write_end,), timeout=60, check=False, capture_output=True)
    os.close(write_end)
    reader = StatusReader(read_end)
    said = list(reader.read())
    reader.close()
    return node.returncode, said


def test_a_thread_that_breaks_ends_the_node_with_its_words():
    code, said = outcome("breaks")
    assert code == 1
    assert said == [Failed(message="control-plane: LookupError: nobody foresaw this", exit_code=1)]


def test_a_thread_that_ends_well_ends_nothing():
    assert outcome("ends") == (0, [])
