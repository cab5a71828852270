"""A reading holds what was read first, with where; what was not read is not there."""

from kvfence.audit.log_scan import Hit
from kvfence.audit.page import page_of
from kvfence.audit.reading import Notebook
from kvfence.report import Place


def test_the_first_source_wins_and_nothing_is_no_figure():
    notebook = Notebook("e")
    page = page_of("/x", "GET /x", b"{}")
    notebook.put_of(page, "pool_tokens", None, "a")
    notebook.put_of(page, "pool_tokens", 7, "b")
    notebook.put_line("x.log", Hit(3, "", {}), "pool_tokens", 9)
    notebook.put_line("x.log", Hit(4, "", {}), "context_tokens", 5)
    notebook.put_line("x.log", Hit(5, "", {}), "page_tokens", None)
    notebook.note("n")
    notebook.note("n")
    reading = notebook.done()
    assert {name: (one.value, one.read_from) for name, one in reading.figures.items()} == {
        "pool_tokens": (7, "GET /x b"),
        "context_tokens": (5, "x.log:4"),
    }
    assert reading.places == {"context_tokens": Place(path="x.log", line=4)}
    assert reading.notes == ("n",)
    assert (notebook.has("pool_tokens"), notebook.number("page_tokens")) == (True, None)


def test_only_whole_numbers_are_numbers():
    notebook = Notebook("e")
    for name, value in (("a", True), ("b", 1.5), ("c", "7"), ("d", 7)):
        notebook.put(name, value, "x")
    reading = notebook.done()
    assert [reading.number(name) for name in ("a", "b", "c", "d", "e")] == [None, None, None, 7, None]
    assert [reading.value(name) for name in ("a", "e")] == [True, None]
