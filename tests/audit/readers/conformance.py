"""What every reader must do; a reader of somebody else's is held to it in the same way: `hold`.

`own` are samples that only this engine writes: pages (path, what was said) and logs (lines); `others` are those
of other engines. Recognition goes through the registry, so a new reader stands in it first.
"""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.audit.log_scan import Hits
from kvfence.audit.page import page_of
from kvfence.audit.readers import GENERIC, READERS, recognise, scan_of
from kvfence.audit.reading import Material
from kvfence.report import Figure

EXAMPLES = 30
SIZES = st.integers(-5, 1 << 62) | st.floats() | st.booleans() | st.none() | st.text(max_size=12)


def bytes_of(said) -> bytes:
    return said.encode() if isinstance(said, str) else json.dumps(said).encode()


def page(path, said):
    return page_of(path, f"GET {path}", bytes_of(said))


def hits_of(lines):
    """The last start of every reader's forms."""
    scan = scan_of("x.log")
    for number, line in enumerate(lines, start=1):
        scan.feed(line, number)
    return {reader.engine: scan.starts(reader.engine, reader.forms)[-1] for reader in (*READERS, GENERIC)}


def hold(reader, own, others):
    """Everything at once."""
    recognises_its_own(reader, own)
    for one in others:
        recognises_no_others(reader, one)
    every_figure_says_where_it_was_read(reader, own)
    nothing_is_read_from_nothing(reader)
    never_raises(reader, own)


def recognises_its_own(reader, own):
    for path, said in own.pages:
        assert recognise([page(path, said)], {}) is reader, said
    for lines in own.logs:
        assert recognise([], hits_of(lines)) is reader, lines


def recognises_no_others(reader, others):
    for path, said in others.pages:
        assert not reader.owns(page(path, said)), said
    for lines in others.logs:
        assert hits_of(lines)[reader.engine].marks(reader.forms) == 0, lines


def every_figure_says_where_it_was_read(reader, own):
    for path, said in own.pages:
        for reading in reader.read(Material((page(path, said),))):
            assert all(path in figure.read_from for figure in reading.figures.values()), reading
    for lines in own.logs:
        for reading in reader.read(Material((), hits_of(lines)[reader.engine])):
            assert all("x.log:" in figure.read_from for figure in reading.figures.values()), reading
            assert set(reading.places) <= set(reading.figures)


def nothing_is_read_from_nothing(reader):
    for reading in reader.read(Material()):
        assert reading.figures == {}


def never_raises(reader, own):
    """Garbage in the places of figures, garbage for a page, and an engine's own words cut anywhere."""
    templates = [(path, said) for path, said in own.pages if not isinstance(said, str)]
    texts = [said for _, said in own.pages if isinstance(said, str)]
    texts += ["\n".join(lines) for lines in own.logs]

    @settings(max_examples=EXAMPLES)
    @given(st.data())
    def with_other_values(data):
        path, said = data.draw(st.sampled_from(templates))
        check(reader, page(path, replaced(said, data)))

    @settings(max_examples=EXAMPLES)
    @given(st.binary(max_size=200))
    def with_any_bytes(body):
        check(reader, page_of("/metrics", "GET /metrics", body))
        hits = hits_of(body.decode("utf-8", "replace").splitlines())
        reader.read(Material((), hits[reader.engine]))

    @settings(max_examples=EXAMPLES)
    @given(st.sampled_from(texts), st.integers(0, 400), st.text("0123456789.,-xKe ", max_size=6))
    def with_a_piece_replaced(text, start, piece):
        spoilt = text[: start % (len(text) + 1)] + piece + text[start % (len(text) + 1) + len(piece) :]
        check(reader, page("/metrics", spoilt))
        hits = hits_of(spoilt.splitlines())
        judge_all(reader.read(Material((), hits[reader.engine])))

    if templates:
        with_other_values()
    with_any_bytes()
    if texts:
        with_a_piece_replaced()


def replaced(said, data):
    """The same shape with other leaves."""
    if isinstance(said, dict):
        return {key: replaced(value, data) for key, value in said.items()}
    if isinstance(said, list):
        return [replaced(value, data) for value in said]
    return data.draw(SIZES) if data.draw(st.booleans()) else said


def check(reader, one_page):
    assert isinstance(reader.owns(one_page), bool)
    judge_all(reader.read(Material((one_page,), Hits())))


def judge_all(readings):
    for reading in readings:
        for name, figure in reading.figures.items():
            assert isinstance(figure, Figure)
            assert figure.value is not None
            if name.endswith("_tokens") and not name.startswith("set."):
                assert isinstance(figure.value, int)
                assert figure.value > 0
