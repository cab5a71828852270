"""Write the table of scenarios in docs/check.md from the registry that `kvfence check` runs.

`--check` says whether the page is up to date (exit 1 when it is not). A test does the same.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "check.md"
sys.path[:0] = [str(ROOT / "src")]

from kvfence.check.scenario import Hazard, Scenario  # noqa: E402 -- runs from anywhere
from kvfence.check.scenarios import SCENARIOS  # noqa: E402 -- the same

BEGIN, END = "<!-- table: docs/make_scenarios.py -->\n", "<!-- end of the table -->\n"
HEAD = """\
| scenario | what it does | hazard | root causes | findings |
| --- | --- | --- | --- | --- |
"""


def table() -> str:
    """The scenarios in the order of a run, and how many a watch and the shortest profile take."""
    scenarios = SCENARIOS.values()
    quick = sum(one.is_in_quick for one in scenarios)
    ordinary = sum(one.hazard is Hazard.ORDINARY for one in scenarios)
    sums = f"{len(scenarios)} scenarios, {ordinary} of them ordinary; {quick}, marked *q*, are in `quick`."
    return HEAD + "".join(_row(one) for one in scenarios) + f"\n{sums}\n\n"


def _row(one: Scenario) -> str:
    name = f"`{one.name}`" + (" *q*" if one.is_in_quick else "")
    codes = " ".join(f"[{code}](codes/{code}.md)" for code in one.codes)
    what = one.what.replace("|", "\\|")
    return f"| {name} | {what} | {one.hazard} | {', '.join(one.classes)} | {codes} |\n"


def page(text: str) -> str:
    """The document with the table of today's scenarios."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + table() + END + rest.split(END)[1]


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    text = PAGE.read_text(encoding="utf-8")
    made = page(text)
    if not is_check:
        PAGE.write_text(made, encoding="utf-8")
    elif made != text:
        sys.exit("docs/check.md is not what the registry of scenarios says: python docs/make_scenarios.py")


if __name__ == "__main__":
    main()
