"""Accepted findings: by fingerprint or by code and place, with a reason and a day, and errors that name the entry."""

import tomllib
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.protocol.errors import OperatorError
from kvfence.report import FindingMade, Noted
from kvfence.report.baseline import Accepted, Baseline, baseline_text, read_baseline, write_baseline
from tests.report.samples import AUDIT, INCIDENT, unread

DAY = date(2027, 1, 31)
MADE = FindingMade(at_s=1.0, finding=INCIDENT)


def entry(**more) -> Accepted:
    return Accepted(**({"reason": "known", "expires": DAY, "fingerprint": INCIDENT.fingerprint} | more))


def judged(*entries: Accepted, today: date = DAY):
    return list(Baseline(entries).judge([MADE], today))


@pytest.mark.parametrize("by", [{}, {"fingerprint": None, "code": "KVF101", "about": "prefill-1"}])
def test_a_finding_is_accepted_up_to_its_day_with_the_reason(by):
    (made,) = judged(entry(**by))
    assert made.accepted == "known (until 2027-01-31)"
    assert made.finding == INCIDENT


@pytest.mark.parametrize(
    "by",
    [
        {"fingerprint": "0" * 32},
        {"fingerprint": None, "code": "KVF102", "about": "prefill-1"},
        {"fingerprint": None, "code": "KVF101", "about": "prefill-2"},
    ],
)
def test_another_finding_stays_open(by):
    assert judged(entry(**by)) == [MADE]


def test_what_has_expired_counts_again_and_a_note_says_so():
    made, note = judged(entry(), today=date(2027, 2, 1))
    assert made == MADE
    assert note == Noted(
        at_s=1.0,
        text="KVF101 prefill-1 was accepted until 2027-01-31 (known) and counts again",
        is_warning=True,
    )


def test_a_valid_entry_goes_before_one_that_has_expired():
    (made,) = judged(entry(expires=date(2020, 1, 1)), entry(reason="again"))
    assert made.accepted.startswith("again")


def test_notes_come_before_the_end_and_findings_keep_their_lines():
    old = entry(expires=date(2020, 1, 1))
    *events, note, end = Baseline((old,)).judge(AUDIT, DAY)
    assert (*events, end) == AUDIT
    assert "counts again" in note.text


def test_other_events_are_left_alone():
    assert tuple(Baseline().judge(AUDIT, DAY)) == AUDIT


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "baseline.toml"
    write_baseline(path, [INCIDENT, unread()], reason='waits for "0.5.22"\n', expires=DAY)
    baseline = read_baseline(path)
    assert [one.fingerprint for one in baseline.entries] == [INCIDENT.fingerprint, unread().fingerprint]
    assert {one.reason for one in baseline.entries} == {'waits for "0.5.22"\n'}
    assert {one.expires for one in baseline.entries} == {DAY}


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
def test_any_words_can_be_a_reason(reason, what):
    text = baseline_text([unread(what=what)], reason=reason, expires=DAY)
    assert tomllib.loads(text)["accepted"][0]["reason"] == reason


def read(text: str, tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(text)
    return read_baseline(path)


WHOLE = 'code = "KVF101"\nabout = "x"\nreason = "y"\nexpires = 2027-01-31\n'


def test_days_may_be_written_as_text_or_with_a_time(tmp_path):
    for day in ('"2027-01-31"', "2027-01-31", "2027-01-31T10:00:00Z"):
        text = f"[[accepted]]\n{WHOLE}".replace("2027-01-31\n", f"{day}\n")
        assert read(text, tmp_path).entries[0].expires == DAY


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[acepted]]\n", "unknown key 'acepted': did you mean accepted"),
        (f"[[accepted]]\n{WHOLE}resaon = 1\n", "entry 1 has an unknown key 'resaon': did you mean reason"),
        (f"[[accepted]]\n{WHOLE}zzz = 1\n", "unknown key 'zzz': known are fingerprint, code"),
        ("accepted = 1\n", r"write each entry under a heading \[\[accepted\]\]"),
        ("[[accepted]]\nexpires = 2027-01-31\n", "entry 1 has no reason"),
        ('[[accepted]]\nreason = " "\n', "reason is a text, and not an empty one"),
        ('[[accepted]]\nreason = "y"\n', "needs either a fingerprint, or a code"),
        ('[[accepted]]\nreason = "y"\ncode = "KVF101"\n', "needs either a fingerprint, or a code"),
        (f'[[accepted]]\nfingerprint = "{"0" * 32}"\n{WHOLE}', "needs either a fingerprint, or a code"),
        ('[[accepted]]\nreason = "y"\nfingerprint = "12"\n', "a fingerprint has 32 hex digits"),
        ("[[accepted]]\n" + WHOLE.replace("expires = 2027-01-31", ""), "does not expire: give it a day"),
        ("[[accepted]]\n" + WHOLE.replace("2027-01-31", '"soon"'), "expires is a day such as"),
        ("[[accepted]]\n" + WHOLE.replace("KVF101", "KVFF101"), "no code 'KVFF101': did you mean KVF101"),
        ("[[accepted", "is no TOML"),
    ],
)
def test_what_is_wrong_is_named(text, words, tmp_path):
    with pytest.raises(OperatorError, match=words):
        read(text, tmp_path)


def test_a_file_that_is_not_there_is_an_operators_error(tmp_path):
    with pytest.raises(OperatorError, match="cannot read the baseline"):
        read_baseline(tmp_path / "none.toml")
