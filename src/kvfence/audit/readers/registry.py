"""All readers, and the choice of who reads.

Recognition goes by marks: pages first (a live server is no other engine), then the forms of a log. Where two
engines have as many, nobody is recognised.
"""

from collections.abc import Mapping, Sequence

from kvfence.audit.log_scan import Form, Hits, LogScan
from kvfence.audit.page import Page
from kvfence.audit.readers import (
    generic,
    kvfence,
    llamacpp,
    lmdeploy,
    ollama,
    sglang,
    tensorrt_llm,
    tgi,
    vllm,
)
from kvfence.audit.readers.interface import Reader

READERS: tuple[Reader, ...] = (
    sglang.READER,
    vllm.READER,
    kvfence.READER,
    llamacpp.READER,
    tensorrt_llm.READER,
    lmdeploy.READER,
    tgi.READER,
    ollama.READER,
)
GENERIC: Reader = generic.READER


def all_forms() -> dict[str, Sequence[Form]]:
    """The forms of every reader, for one scan."""
    return {reader.engine: reader.forms for reader in (*READERS, GENERIC)}


def scan_of(log: str) -> LogScan:
    """Return a scan of one log for every engine's forms."""
    return LogScan(log, all_forms())


def recognise(pages: Sequence[Page], hits: Mapping[str, Hits]) -> Reader:
    """Return whose pages and lines these are; `hits` by engine. The generic reader if nobody's, or two's."""
    by_pages = {reader.engine: sum(1 for page in pages if reader.owns(page)) for reader in READERS}
    by_lines = {
        reader.engine: hits[reader.engine].marks(reader.forms) if reader.engine in hits else 0
        for reader in READERS
    }
    for marks in (by_pages, by_lines):
        most = max(marks.values())
        best = [reader for reader in READERS if marks[reader.engine] == most]
        if most > 0:
            return best[0] if len(best) == 1 else GENERIC
    return GENERIC
