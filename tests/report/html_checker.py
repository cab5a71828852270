"""A reader of HTML that objects to what a report must not have."""

from html.parser import HTMLParser

from kvfence.report.html_markup import VOID


class Checker(HTMLParser):
    """Elements close in the order in which they were opened; ids are unique; links within lead somewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.tags = [], [], [], set()

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.tags.add(tag)
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known["href"]] if "href" in known else []
        assert not {name for name in known if name.startswith("on")} | ({"style", "src"} & set(known))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in VOID
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
