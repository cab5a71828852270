"""Text and SVG of a short run."""

import xml.etree.ElementTree as ET

from kvfence.world.diagram import draw_svg, draw_text
from kvfence.world.telling import Moment

MOMENTS = [
    Moment("0", "clients", "router0", "request 1", ("decode0 ← Reserve r1#1",), is_weather=True),
    Moment("7", "router0", "decode0", "Reserve r1#1"),
    Moment("8", "decode0", "decode0", "Launch", found=("foreign read, decode0: <oh>",)),
    Moment("9", "decode0", "clients", "back"),
]


def test_text_has_an_arrow_for_what_crosses_and_a_mark_for_what_must_not_happen():
    assert draw_text(MOMENTS).splitlines() == [
        "when    clients    router0    decode0",
        "   0       |~~~~~~~~~>|          |       request 1",
        "           |          |          |         · decode0 ← Reserve r1#1",
        "   7       |          |--------->|       Reserve r1#1",
        "   8       |          |          o       Launch",
        "  !!       |          |          |       !! foreign read, decode0: <oh>",
        "   9       |<--------------------|       back",
    ]


def test_svg_is_a_document_with_every_word():
    drawn = draw_svg(MOMENTS, "a & b")
    root = ET.fromstring(drawn)
    words = " ".join(element.text or "" for element in root.iter())
    for moment in MOMENTS:
        assert all(word in words for word in (moment.what, *moment.said, *moment.found))
    assert "a & b" in words


def test_nothing_is_drawn_of_nothing():
    assert draw_text([]).strip() == "when"
