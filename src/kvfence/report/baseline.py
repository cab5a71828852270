"""Accepted findings: a TOML file in which each has a reason and a day on which it counts again.

    [[accepted]]
    fingerprint = "32 hex digits"      # or code and about, which accept every finding of that code there
    reason = "why it is accepted"
    expires = 2027-03-31

Rules it keeps: nothing is accepted without a reason or for ever; what has expired counts again, and a note
says so; a key that is unknown is an error.
"""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path

import msgspec

from kvfence.protocol.errors import OperatorError
from kvfence.report.atomic import write_atomically
from kvfence.report.codes import code_named
from kvfence.report.events import AnyEvent, FindingMade, Noted, RunEnded
from kvfence.report.finding import Finding

TABLE = "accepted"
KEYS = ("fingerprint", "code", "about", "reason", "expires")
FINGERPRINT_DIGITS = 32
HEAD = "# Findings that are accepted: each with its reason, until its day. See `kvfence explain CODE`.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """One entry. Either `fingerprint`, or `code` and `about`. It holds up to and on the day `expires`."""

    reason: str
    expires: date
    fingerprint: str | None = None
    code: str | None = None
    about: str | None = None

    def covers(self, finding: Finding) -> bool:
        """Whether it speaks of this finding, expired or not."""
        if self.fingerprint is not None:
            return self.fingerprint == finding.fingerprint
        return (self.code, self.about) == (finding.code, finding.about)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of one file."""

    entries: tuple[Accepted, ...] = ()

    def judge(self, events: Iterable[AnyEvent], today: date) -> Iterator[AnyEvent]:
        """Yield the events with findings marked as accepted.

        Notes about what has expired come before the run's end, so that every finding keeps its line.
        """
        notes = []
        for event in events:
            if isinstance(event, FindingMade):
                made, note = self.judge_finding(event, today)
                notes += [] if note is None else [note]
                yield made
            else:
                if isinstance(event, RunEnded):
                    yield from notes
                    notes = []
                yield event
        yield from notes

    def judge_finding(self, made: FindingMade, today: date) -> tuple[FindingMade, Noted | None]:
        """Return the finding, marked if it is accepted, and a note if it was accepted once."""
        covering = [entry for entry in self.entries if entry.covers(made.finding)]
        valid = next((entry for entry in covering if today <= entry.expires), None)
        if valid is not None:
            why = f"{valid.reason} (until {valid.expires.isoformat()})"
            return msgspec.structs.replace(made, accepted=why), None
        if not covering:
            return made, None
        text = _has_expired(made.finding, covering[-1])
        return made, Noted(at_s=made.at_s, text=text, is_warning=True)


def _has_expired(finding: Finding, entry: Accepted) -> str:
    return (
        f"{finding.code} {finding.about} was accepted until {entry.expires.isoformat()} ({entry.reason}) "
        "and counts again"
    )


def read_baseline(path: Path) -> Baseline:
    """Read the file. Raises OperatorError, naming the entry, for what is wrong in it."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperatorError(f"cannot read the baseline {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"the baseline {path} is no TOML: {error}") from error
    _refuse_unknown(data, (TABLE,), f"the baseline {path}")
    entries = data.get(TABLE, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise OperatorError(f"the baseline {path}: write each entry under a heading [[{TABLE}]]")
    return Baseline(
        tuple(_entry(entry, f"the baseline {path}, entry {n}") for n, entry in enumerate(entries, start=1))
    )


def _entry(data: dict[str, object], place: str) -> Accepted:
    _refuse_unknown(data, KEYS, place)
    fingerprint, code, about = (_words(data, key, place) for key in ("fingerprint", "code", "about"))
    reason = _words(data, "reason", place)
    if reason is None:
        raise OperatorError(f"{place} has no reason: say why the finding is accepted")
    if (fingerprint is None) == (code is None) or (code is None) != (about is None):
        raise OperatorError(f"{place} needs either a fingerprint, or a code and what it is about")
    if fingerprint is not None and len(fingerprint) != FINGERPRINT_DIGITS:
        raise OperatorError(f"{place}: a fingerprint has {FINGERPRINT_DIGITS} hex digits, as in the reports")
    return Accepted(
        reason=reason,
        expires=_day(data, place),
        fingerprint=fingerprint,
        code=None if code is None else code_named(code).number,
        about=about,
    )


def _words(data: dict[str, object], key: str, place: str) -> str | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise OperatorError(f"{place}: {key} is a text, and not an empty one")
    return value


def _day(data: dict[str, object], place: str) -> date:
    value = data.get("expires")
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError as error:
            raise OperatorError(f"{place}: expires is a day such as 2027-03-31, not {value!r}") from error
    if not isinstance(value, date):
        raise OperatorError(f"{place} does not expire: give it a day, such as expires = 2027-03-31")
    return value.date() if isinstance(value, datetime) else value


def _refuse_unknown(data: dict[str, object], keys: tuple[str, ...], place: str) -> None:
    for key in data:
        if key not in keys:
            close = get_close_matches(key, keys, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(keys)}"
            raise OperatorError(f"{place} has an unknown key {key!r}: {hint}")


def write_baseline(path: Path, findings: Iterable[Finding], *, reason: str, expires: date) -> None:
    """Write a file that accepts these findings, whole or not at all."""
    write_atomically(path, baseline_text(findings, reason=reason, expires=expires))


def baseline_text(findings: Iterable[Finding], *, reason: str, expires: date) -> str:
    """Return a file that accepts these findings; what each is stands beside it as a comment."""
    parts = [HEAD]
    for finding in findings:
        comment = " ".join(f"{finding.code} {finding.about}: {finding.what}".split())
        parts.append(
            f"\n# {_without_controls(comment)}\n[[{TABLE}]]\nfingerprint = {_quoted(finding.fingerprint)}\n"
            f"reason = {_quoted(reason)}\nexpires = {expires.isoformat()}\n"
        )
    return "".join(parts)


def _without_controls(words: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def _quoted(words: str) -> str:
    """A basic string of TOML: quotes, backslashes and control characters escaped."""
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(letter if letter.isprintable() else _escaped(letter) for letter in escaped)}"'


def _escaped(letter: str) -> str:
    return f"\\U{ord(letter):08x}"
