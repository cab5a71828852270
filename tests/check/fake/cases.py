"""Public reports of servers that went wrong, each as a fake server that does the same, with its figures.

The numbers of the cases are those of our collection; what is said of them is what their reporters claim.
"""

from dataclasses import replace

from tests.check.fake.clock import Clock
from tests.check.fake.setup import Setup

_LONG = Clock(a_s=0.05, b_s=2e-5)

CASES: dict[str, Setup] = {
    # The prompt cache in memory restores another, finished conversation; cached_tokens is 0 all the same.
    "CS-01": Setup(faults=("offload-mixup/wrong-entry",)),
    # Four parallel one-word tasks get each other's words.
    "CS-03": Setup(faults=("row-mixup/swapped-tokens",)),
    # Identical prompts in parallel, some answered wrongly: a batch defect, and no leak.
    "CS-05": Setup(faults=("row-mixup/garbled-batch",)),
    # A prompt a few tokens over the buffer: its head is dropped, and usage halves.
    "CS-07": Setup(
        context_tokens=65_536,
        prefill_tokens=65_532,
        pool_tokens=131_072,
        clock=_LONG,
        faults=("over-length/head-dropped",),
    ),
    # A declared context of 40k over 4,096: 200 all the same, with half of 4,096 in usage.
    "CS-09": Setup(
        context_tokens=40_960, prefill_tokens=4_096, pool_tokens=65_536, faults=("over-length/head-dropped",)
    ),
    # A prompt between pool and context waits for ever, and everybody behind it.
    "CS-10": Setup(
        context_tokens=262_144,
        pool_tokens=76_640,
        clock=_LONG,
        dialect="vllm",
        faults=("over-length/hang",),
    ),
    # An over-length prompt without max_tokens ends the server.
    "CS-12": Setup(
        context_tokens=163_840,
        pool_tokens=59_856,
        clock=_LONG,
        dialect="sglang",
        faults=("over-length/crash-without-limit",),
    ),
    # Answers run past their own max_tokens.
    "CS-13": Setup(faults=("row-mixup/foreign-limit",)),
}

# The longest ones once more, with an eighth of their sizes: what is asked of them takes an eighth of the time.
EIGHTHS: dict[str, Setup] = {
    "CS-07": replace(CASES["CS-07"], context_tokens=8_192, prefill_tokens=8_160, pool_tokens=16_384),
    "CS-10": replace(CASES["CS-10"], context_tokens=32_768, pool_tokens=9_584),
    "CS-12": replace(CASES["CS-12"], context_tokens=20_480, pool_tokens=7_472),
}
