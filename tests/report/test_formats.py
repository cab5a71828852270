"""Formats are named as the command line spells them."""

from kvfence.report.formats import Format


def test_formats_have_their_names():
    assert [to.value for to in Format] == ["json", "sarif", "junit", "html", "terminal"]
