"""STYLE 20: `tests/` mirrors `src/`; each file is covered by a test file of its own.

A file that is a part of a larger concept by its name (`decode_actions` of `decode`) may be covered by the
concept's tests. What is covered in another place still is written down here, with the reason; an entry that
is not needed any more is a fault too.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

# Say what a package is and start the program; nothing of their own to cover.
NOT_COVERED = {"__init__", "__main__"}


@dataclass(frozen=True)
class Elsewhere:
    """Files of one ring that another test file covers, and why."""

    places: tuple[str, ...]
    why: str


ELSEWHERE: dict[str, Elsewhere] = {
    "tests/protocol/test_words.py": Elsewhere(
        (
            "protocol/config.py",
            "protocol/decisions.py",
            "protocol/errors.py",
            "protocol/machine.py",
            "protocol/memory.py",
            "protocol/peers.py",
            "protocol/prefix_source.py",
            "protocol/tables.py",
            "protocol/tokens.py",
        ),
        "the small parts of the protocol: a few tests each, side by side",
    ),
    "tests/check/test_bench.py": Elsewhere(
        ("check/asks.py", "check/known.py", "check/scenario.py"),
        "what requests, answers and experiments are, as data: the bench is what uses all of them",
    ),
    "tests/cli/test_check_run.py": Elsewhere(
        ("cli/check.py",),
        "the flags of the command, all of which it is given there",
    ),
    "tests/protocol/test_rows.py": Elsewhere(
        ("protocol/commands.py", "protocol/events.py", "protocol/vocabulary.py"),
        "data without behaviour; what is made of them is driven row by row",
    ),
    "tests/faults/test_catalogue.py": Elsewhere(
        (
            "faults/entries_lifetime.py",
            "faults/entries_memory.py",
            "faults/entries_sharing.py",
            "faults/entries_transfer.py",
            "faults/fault.py",
        ),
        "data; every entry is looked at in the catalogue that they make",
    ),
    "tests/engine/test_model.py": Elsewhere(
        (
            "engine/attention.py",
            "engine/attention_decode.py",
            "engine/attention_pages.py",
            "engine/attention_prefill.py",
        ),
        "right means equal to plain transformers, which only a whole model can show",
    ),
    "tests/engine/test_sampler.py": Elsewhere(("engine/sampling.py",), "data without behaviour"),
    "tests/serving/test_api_openai.py": Elsewhere(
        ("serving/api.py", "serving/api_format.py"), "right means what the official client takes for right"
    ),
    "tests/serving/test_api_bad_input.py": Elsewhere(
        (
            "serving/api_body.py",
            "serving/schemas.py",
            "serving/schemas_fields.py",
            "serving/schemas_messages.py",
            "serving/schemas_readers.py",
        ),
        "one table of bad bodies and of what each is answered with",
    ),
    "tests/serving/test_streaming.py": Elsewhere(("serving/jobs.py",), "interfaces without behaviour"),
    "tests/serving/test_supervisor.py": Elsewhere(
        ("serving/node_process.py",), "a process and who watches it are tested with real processes, together"
    ),
    "tests/e2e/test_lifecycle.py": Elsewhere(
        ("serving/compute_main.py", "serving/router_main.py"),
        "they only put parts together: right means that a deployment starts, serves and ends",
    ),
    "tests/verification/test_remembered.py": Elsewhere(
        (
            "verification/changes.py",
            "verification/engine.py",
            "verification/forking.py",
            "verification/layout.py",
            "verification/lazy.py",
        ),
        "right means that every part of a state is what a plain world has, after every happening",
    ),
    "tests/verification/test_search.py": Elsewhere(
        ("verification/crew.py", "verification/outcome.py", "verification/worker.py"),
        "a search, who works for it and what it says are looked at together",
    ),
    "tests/verification/test_catalogue.py": Elsewhere(
        ("verification/scopes.py",), "data, and the scopes that are made of it"
    ),
    "tests/cli/test_app.py": Elsewhere(("cli/serve.py",), "a flag is tested by invoking the command line"),
}


def own_tests(place: str) -> list[str]:
    """Where the tests of a file may stand: its own name first, then those of which it is a part."""
    folder, _, file = place.rpartition("/")
    words = file.removesuffix(".py").split("_")
    names = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    return [f"tests/{folder}/test_{name}.py".replace("//", "/") for name in names]


def uncovered(
    places: Collection[str], tests: Collection[str], elsewhere: Mapping[str, Elsewhere]
) -> Iterator[str]:
    """Files without a test file, and entries of the table that are no longer true."""
    named = {place: test for test, entry in elsewhere.items() for place in entry.places}
    for place in sorted(places):
        if place.rpartition("/")[2].removesuffix(".py") in NOT_COVERED:
            continue
        has_own = any(test in tests for test in own_tests(place))
        if not has_own and place not in named:
            yield f"{place} has no test file: write {own_tests(place)[0]}"
        elif has_own and place in named:
            yield f"{place} has tests of its own now: take it out of the table"
    for place, test in sorted(named.items()):
        if place not in places:
            yield f"{place} is in the table and not there"
        if test not in tests:
            yield f"{place} is said to be covered by {test}, which is not there"
