"""The public bugs: each has a place to look it up, and stands behind a fault."""

from urllib.parse import urlsplit

from kvfence.faults import BUGS, CATALOGUE

WITHOUT_PAGE = {"KVI-004"}  # the incident itself


def test_every_bug_has_an_address_but_those_that_have_none():
    assert {number for number, bug in BUGS.items() if bug.url is None} == WITHOUT_PAGE
    for bug in BUGS.values():
        assert bug.url is None or urlsplit(bug.url).scheme == "https"
        assert bug.project
        assert bug.ref
        assert bug.title


def test_no_bug_is_listed_twice_or_for_nothing():
    cited = {number for fault in CATALOGUE.values() for number in fault.bugs}
    assert cited == set(BUGS)
    urls = [(bug.project, bug.ref) for bug in BUGS.values()]
    assert len(set(urls)) == len(urls)
