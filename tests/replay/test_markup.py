"""Markup cannot be forgotten to be escaped."""

from kvfence.replay.markup import element, joined, paragraph, table, text

EVIL = '<script>"&'


def test_text_and_attributes_are_escaped():
    assert text(EVIL) == '&lt;script&gt;"&amp;'
    assert element("p", text(EVIL), title=EVIL) == (
        '<p title="&lt;script&gt;&quot;&amp;">&lt;script&gt;"&amp;</p>'
    )


def test_names_of_attributes_and_empty_ones():
    assert (
        element("rect", class_="a", aria_label="b", id=None, x=0)
        == '<rect class="a" aria-label="b" x="0"></rect>'
    )
    assert element("input", value=3) == '<input value="3">'


def test_tables_and_paragraphs():
    made = table(("h",), [[text(1)], [text("<2>")]])
    assert made == (
        '<table><thead><tr><th scope="col">h</th></tr></thead>'
        "<tbody><tr><td>1</td></tr><tr><td>&lt;2&gt;</td></tr></tbody></table>"
    )
    assert paragraph("a & b", class_="soft") == '<p class="soft">a &amp; b</p>'
    assert joined([text("<"), text(">")]) == "&lt;&gt;"
