"""Snapshots of reports: plain files in `snapshots/`, compared as text.

`python -m tests.report.snapshots` writes them again from the samples; look at the difference before keeping it.
"""

from pathlib import Path

from kvfence.report.convert import Options, render
from kvfence.report.formats import Format
from kvfence.report.jsonl import as_lines
from tests.report.samples import RUNS

FOLDER = Path(__file__).parent / "snapshots"
SOURCE = "runs/run-0.jsonl"
ENDINGS = {Format.TERMINAL: "txt", Format.JUNIT: "xml", Format.SARIF: "sarif"}


def made() -> dict[str, str]:
    """Every sample in every format, by the name of its file."""
    texts = {f"{name}.jsonl": as_lines(events) for name, events in RUNS.items()}
    for name, events in RUNS.items():
        for to in Format:
            texts[f"{name}.{ENDINGS.get(to, to)}"] = render(events, to, Options(source=SOURCE))
    return texts


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.iterdir():
        file.unlink()
    for name, text in made().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
