"""Style and script need nothing from outside, and the script's arithmetic is the accounting's."""

import json
import shutil
import subprocess

import pytest

from kvfence.replay.numbers import Sizes, account
from kvfence.replay.scaled import scaled_leak
from kvfence.replay.style import SCRIPT, STYLE

CASES = [(1_048_576, 681_280, 16), (64, 40, 16), (64, 640, 16), (100, 99, 7), (2_048, 1_328, 16)]


def test_nothing_is_fetched():
    for words in ("http:", "https:", "url(", "@import", "fetch(", "XMLHttpRequest", "import("):
        assert words not in STYLE + SCRIPT


def test_it_knows_dark_screens_and_paper():
    assert "prefers-color-scheme: dark" in STYLE
    assert "@media print" in STYLE


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no JavaScript on this machine")
def test_the_sliders_compute_what_the_ledger_says():
    calls = ",".join(f"account({context},{pool},{page})" for context, pool, page in CASES)
    done = subprocess.run(
        ["node", "-e", f"{SCRIPT}; console.log(JSON.stringify([{calls}]))"],
        capture_output=True,
        text=True,
        check=True,
    )
    for (context, pool, page), seen in zip(CASES, json.loads(done.stdout), strict=True):
        accounting = account(Sizes(context, pool, page))
        assert seen["held"] == accounting.largest_prefill_tokens
        assert seen["band"] == accounting.band_tokens
        assert seen["share"] == pytest.approx(accounting.pool_percent)
        leak = scaled_leak(page)
        assert (seen["read"], seen["foreign"]) == (len(leak.read), len(leak.foreign))
