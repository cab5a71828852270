"""Parts: one object for one form, names that are numbered, digests by content."""

import copy

import pytest

from kvfence.protocol.words import AttemptId, LeaseId, PageRef
from kvfence.verification.parts import Names, Parts, Sink, digest_of


def names(**how):
    return Names(**{"symmetric": True, "numbered": False, "kinds": {}, **how})


def test_parts_of_one_form_are_one_object():
    parts = Parts(names())

    def made(page):
        sink = Sink(parts.names)
        sink.put("page")
        sink.page("decode0", page)
        return parts.intern(page, sink)

    assert made(1) is made(1)
    assert made(1) is not made(2)
    assert made(1).shape == made(2).shape, "they differ in a name alone"
    assert len(parts) == 2


def test_where_pages_are_not_alike_their_numbers_are_in_the_shape():
    plain = names(symmetric=False)
    shapes = set()
    for page in (1, 2):
        sink = Sink(plain)
        sink.ref("decode0", PageRef(page, 1))
        shapes.add(sink.digest())
    assert len(shapes) == 2


def test_lease_numbers_are_kept_apart_from_names_and_stay_only_where_they_are_looked_at():
    loose, kept = Sink(names()), Sink(names(numbered=True))
    for sink in (loose, kept):
        sink.lease(LeaseId(1, 7))
        sink.bound(1, 9)
    assert loose.shape == [1, 1]
    assert kept.shape == [7, 1, 9, 1]
    assert len(loose.seqs) == len(loose.bounds) == 1
    assert not loose.names


def test_requests_of_a_kind_have_one_shape_and_others_have_their_own():
    grouped = names(kinds={1: 1, 2: 1})
    shapes = []
    for request in (1, 2, 3):
        sink = Sink(grouped)
        sink.request(request)
        shapes.append(tuple(sink.shape))
    assert shapes[0] == shapes[1] != shapes[2]


def test_no_attempt_yet_is_told_from_the_first():
    before, after = Sink(names()), Sink(names())
    before.attempt(AttemptId(1, 1, 0))
    after.attempt(AttemptId(1, 1, 1))
    assert before.digest() != after.digest()


def test_a_digest_is_one_of_content():
    assert digest_of(("a", 1, None)) == digest_of(("a", 1, None))
    assert digest_of(("a", 1)) != digest_of(("a", "1"))


def test_a_part_stays_in_its_process():
    parts = Parts(names())
    part = parts.intern(None, Sink(parts.names))
    with pytest.raises(TypeError, match="stays in its process"):
        copy.copy(part)
