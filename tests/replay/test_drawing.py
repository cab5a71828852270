"""The drawings: well-formed, and in agreement with the map that they draw."""

from xml.etree import ElementTree as ET

from kvfence.replay.drawing import band_drawing, caption_words, page_map_drawing, scaled_drawing
from kvfence.replay.page_map import MapPage, Origin, Owner, PageMap
from kvfence.replay.scaled import scaled_leak
from tests.replay.samples import page_map


def svg_of(markup):
    return ET.fromstring(markup).find(".//svg")


def test_a_page_map_has_a_block_a_page_and_says_whether_it_was_read():
    drawn = svg_of(page_map_drawing(page_map(11)))
    pages = drawn.findall("g")
    assert [page.find("title").text for page in pages] == [
        "page 7, positions 0 to 3: 2 empty, 1 own, 1 another tenant's; read",
        "page 3, positions 4 to 7: 4 another tenant's; read",
        "page 9, positions 8 to 11: 2 own, 1 another tenant's, 1 empty; read",
    ]
    # The most common owner is the ground, and each other slot lies on top.
    assert [rect.get("class") for rect in pages[0].findall("rect")] == ["empty", "own", "other", "read"]
    assert [rect.get("class") for rect in pages[1].findall("rect")] == ["other", "read"]


def test_of_a_refused_request_every_frame_is_dashed():
    drawn = svg_of(page_map_drawing(page_map(0)))
    assert {page.findall("rect")[-1].get("class") for page in drawn.findall("g")} == {"unread"}
    words = caption_words(page_map(0), "B", "A")
    assert (
        words
        == "Decode read none of the 12 slots that it had reserved for B: 6 hold A's bytes, 3 are B's own, 3 are empty."
    )


def test_a_caption_counts_what_was_read():
    words = caption_words(page_map(8), "B", "A")
    assert words == "Decode read 8 slots in 3 pages for B: 5 hold A's bytes, 1 are B's own, 2 are empty."


def test_many_pages_are_broken_into_lines():
    pages = tuple(MapPage(page, (Owner.OTHER,) * 16) for page in range(45))
    drawn = svg_of(page_map_drawing(PageMap(pages, 700, Origin.POOL)))
    places = [page.get("transform") for page in drawn.findall("g")]
    assert len(set(places)) == 45
    assert len({place.split()[1] for place in places}) == 3
    frames = [page.findall("rect")[-1].get("class") for page in drawn.findall("g")]
    assert frames == ["read"] * 44 + ["unread"]


def test_a_map_says_where_it_comes_from():
    assert "read from the decode node&#x27;s pool" in page_map_drawing(page_map(3)) or (
        "read from the decode node's pool" in page_map_drawing(page_map(3))
    )
    model = PageMap(page_map(3).pages, 3, Origin.MODEL)
    assert "computed by the page accounting" in page_map_drawing(model)


def test_the_scaled_pool_names_every_slot():
    drawn = svg_of(scaled_drawing(scaled_leak(4, pages=2)))
    assert [name.text for name in drawn.iter("text")] == ["B0", "A1", "A2", "A3", "A4", "A5", "A6", "A7"]
    assert [rect.get("class") for rect in drawn.iter("rect")] == ["own", *["other"] * 7]


def test_the_band_lies_between_what_is_held_and_the_context():
    bars = {bar.get("id"): bar for bar in ET.fromstring(band_drawing(1000, 650, 640)).iter("rect")}
    assert float(bars["bar-context"].get("width")) == 700
    assert float(bars["bar-pool"].get("width")) == 455
    assert (float(bars["bar-band"].get("x")), float(bars["bar-band"].get("width"))) == (448, 252)
    wide = {bar.get("id"): bar for bar in ET.fromstring(band_drawing(100, 200, 100)).iter("rect")}
    assert float(wide["bar-band"].get("width")) == 0
