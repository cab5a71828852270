"""A program in a node's place: says what a node says, and behaves as a test wants.

FAKE_NODES (JSON, node → list of words) chooses: `refuses`, `crashes`, `mute` (never ready), `stubborn`
(ignores SIGTERM), `babbles` (a line that is no status), `small` (a pool of 16 tokens). SIGUSR1 crashes it;
SIGUSR2 makes it ask for the end of `prefill-0`, by what that node wrote into the run directory. It does
not tie itself to its launcher, so that a test can see it swept.
"""

import json
import os
import signal
import sys
from pathlib import Path

config = json.loads(Path(sys.argv[1]).read_bytes())
node, run_dir = config["node"], Path(config["run_dir"])
words = json.loads(os.environ.get("FAKE_NODES", "{}")).get(node, [])
incarnation = os.getpid()


def say(event, **facts):
    os.write(config["status_fd"], json.dumps({"event": event, **facts}).encode() + b"\n")


def ask_for_the_end_of_prefill(*_):
    other = int((run_dir / "prefill-0.incarnation").read_text())
    say("kill", node="prefill-0", incarnation=other + int(os.environ.get("FAKE_OFF_BY", "0")))
    print("level='warning' event='asked for an end'", file=sys.stderr, flush=True)


def crash(*_):
    print("Traceback: it broke", file=sys.stderr, flush=True)
    os._exit(7)


(run_dir / f"{node}.incarnation").write_text(str(incarnation))
signal.signal(signal.SIGUSR1, crash)
signal.signal(signal.SIGUSR2, ask_for_the_end_of_prefill)
signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in words else lambda *_: os._exit(0))
say("started", incarnation=incarnation)
say("progress", step="loading the model", done=1, total=2)
print(f"timestamp='t' level='info' node='{node}' event='all is well'", file=sys.stderr)
print(f"timestamp='t' level='warning' node='{node}' event='it is warm'", file=sys.stderr, flush=True)
if "refuses" in words:
    say("failed", message="no room for the pool; free some memory", exit_code=2)
    sys.exit(2)
if "crashes" in words:
    crash()
if "babbles" in words:
    os.write(config["status_fd"], b"hello there\n")
if "mute" not in words:
    pool = None if config["role"] == "router" else 16 if "small" in words else config["pool_tokens"] or 256
    port = config.get("port") or 4321
    url = f"http://{config['host']}:{port}" if config["role"] == "router" else None
    say("ready", incarnation=incarnation, pool_tokens=pool, context_tokens=config["context_tokens"], url=url)
while True:
    signal.pause()
