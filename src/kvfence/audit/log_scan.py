"""What stands in a log: which forms of which engine, the last of each rank.

Rules it keeps:
- What is kept is bounded whatever the log holds.
- What container tools write before a line is taken away; whose line it was is told.
- A log that holds several starts is divided at each: the last one of each identity speaks, and those that it
  took the place of are told where nothing says that they ended: they may be another server's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

RANKS_MAX = 4_096
VALUES_PER_RANK_MAX = 8
STARTS_MAX = 256
GROUP_CHARACTERS_MAX = 200

# `kubectl logs --prefix`, and `docker compose logs`.
_WHOSE = re.compile(r"\[pod/([\w./-]{1,200})\] |([\w.-]{1,100}) +\| ")
_EVERY_WHOSE = re.compile(rb"^(?:\[pod/([\w./-]{1,200})\] |([\w.-]{1,100}) +\| )", re.MULTILINE)
_RANK = re.compile(r"(?<![A-Za-z0-9])((?:DP|TP|PP|EP|RANK|rank) ?\d+)(?![A-Za-z0-9])")
_HEAD_CHARACTERS = 160  # a rank stands before the words
_NUMBER = re.compile(r"[\d,]+", re.ASCII)
# What goes on with a number behind its first digits: separators of other countries, units, fractions.
_REST_OF_NUMBER = re.compile(r"(?:\w|[.,'\u2019\u00a0\u202f](?=\d))+")


@dataclass(frozen=True, slots=True)
class Form:
    """A form of line. `needle` is a literal part of every such line; `pattern` has named groups.

    `is_mark`: the line shows which engine wrote it. `is_start`: with it a new process begins. `is_identity`:
    the values of its groups tell nodes apart that wrote into one log. `is_end`: the process ends with it.
    """

    name: str
    needle: str
    pattern: re.Pattern[str]
    is_mark: bool = True
    is_start: bool = False
    is_identity: bool = False
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of a form: its number in the log, from 1, the rank that wrote it, and its groups."""

    line: int
    rank: str
    groups: Mapping[str, str]


@dataclass(slots=True)
class Hits:
    """What one start left of each form, bounded. `log` is the name of the log; `has_ended`: it says so.

    `is_short`: the bounds kept something out that may have counted.
    """

    log: str = ""
    by_form: dict[str, dict[str, list[Hit]]] = field(default_factory=dict)
    has_ended: bool = False
    is_short: bool = False

    def add(self, form: str, hit: Hit) -> None:
        """Keep it as the last of its rank; the same values again only move it."""
        ranks = self.by_form.setdefault(form, {})
        if hit.rank not in ranks and len(ranks) >= RANKS_MAX:
            self.is_short = True
            return
        values = ranks.setdefault(hit.rank, [])
        others = [kept for kept in values if kept.groups != hit.groups]
        # Of a rank that has a name the last line counts; lines without a name may be those of several ranks.
        self.is_short = self.is_short or (not hit.rank and len(others) >= VALUES_PER_RANK_MAX)
        values[:] = others[1 - VALUES_PER_RANK_MAX :]
        values.append(hit)

    def last(self, form: str) -> list[Hit]:
        """The last line of each rank."""
        return [values[-1] for values in self.by_form.get(form, {}).values()]

    def every(self, form: str) -> list[Hit]:
        """Lines of different values, the latest ones of each rank."""
        return [hit for values in self.by_form.get(form, {}).values() for hit in values]

    def latest(self, form: str) -> Hit | None:
        """The very last line of a form."""
        return max(self.last(form), key=lambda hit: hit.line, default=None)

    def has(self, form: str) -> bool:
        """Whether there was such a line."""
        return form in self.by_form

    def identity(self, forms: Sequence[Form]) -> tuple[tuple[str, str], ...]:
        """What tells this start's node from others."""
        found = [hit for form in forms if form.is_identity and (hit := self.latest(form.name)) is not None]
        return tuple(sorted((name, value) for hit in found for name, value in hit.groups.items()))

    def marks(self, forms: Sequence[Form]) -> int:
        """How many different forms that only this engine writes are there."""
        return sum(1 for form in forms if form.is_mark and form.name in self.by_form)


@dataclass(slots=True)
class Starts:
    """The starts in one log of one engine's forms; the first begins with the log."""

    hits: list[Hits]
    count: int = 0

    def begin(self, log: str) -> None:
        """A new process begins; what was before its first line stays with the first, unless that ended."""
        self.count += 1
        if self.count > 1 or self.hits[-1].has_ended:
            is_short = len(self.hits) >= STARTS_MAX
            if is_short:
                del self.hits[0]
            self.hits.append(Hits(log, is_short=is_short or self.hits[-1].is_short))


class LogScan:
    """Scans the lines of one log for the forms of all engines: `feed` lines, then ask `starts`."""

    def __init__(self, log: str, forms: Mapping[str, Sequence[Form]]) -> None:
        """`forms` by engine; `log` is the name that figures say they were read in."""
        self._log = log
        self._forms: dict[str, list[tuple[str, Form]]] = {}
        for engine, several in forms.items():
            for form in several:
                self._forms.setdefault(form.needle, []).append((engine, form))
        self._starts = {engine: Starts([Hits(log)]) for engine in forms}

    def feed(self, line: str, number: int) -> None:
        """Look at one line; `number` is where it stands in the file."""
        rank = "/".join(_RANK.findall(line[:_HEAD_CHARACTERS]))
        for needle, several in self._forms.items():
            if needle not in line:
                continue
            for engine, form in several:
                for found in form.pattern.finditer(line):
                    groups = _groups(found)
                    self._keep(engine, form, Hit(number, rank, groups))
                    # Writers that share a file glue their lines: of figures every one counts.
                    if form.is_start or not all(map(_NUMBER.fullmatch, groups.values())):
                        break

    def _keep(self, engine: str, form: Form, hit: Hit) -> None:
        starts = self._starts[engine]
        if form.is_start:
            starts.begin(self._log)
        starts.hits[-1].add(form.name, hit)
        starts.hits[-1].has_ended = starts.hits[-1].has_ended or form.is_end

    def starts(self, engine: str, forms: Sequence[Form]) -> tuple[Hits, ...]:
        """Of each identity the last start, in the order of their lines; at least one, which may be empty."""
        latest: dict[tuple[tuple[str, str], ...], Hits] = {}
        for hits in self._that_speak(engine):
            identity = hits.identity(forms)
            latest.pop(identity, None)
            latest[identity] = hits
        nameless = latest.get(())
        if nameless is not None and nameless.has_ended and len(latest) > 1:
            del latest[()]  # the end of a process whose beginning the log does not hold
        return tuple(latest.values()) or (Hits(self._log),)

    def replaced(self, engine: str, forms: Sequence[Form]) -> tuple[Hits, ...]:
        """The starts whose place a later one of the same identity took, and that never said they ended."""
        speaking = self.starts(engine, forms)
        return tuple(
            hits
            for hits in self._that_speak(engine)
            if not hits.has_ended and all(hits is not one for one in speaking)
        )

    def _that_speak(self, engine: str) -> list[Hits]:
        every = self._starts[engine].hits
        return [hits for hits in every if hits.by_form or len(every) == 1]

    def count_of_starts(self, engine: str) -> int:
        """How often a process began in this log."""
        return self._starts[engine].count


def _groups(found: re.Match[str]) -> dict[str, str]:
    return {
        name: f"{value}{_rest_of(found, name)}"[:GROUP_CHARACTERS_MAX]
        for name, value in found.groupdict().items()
        if value is not None
    }


def _rest_of(found: re.Match[str], name: str) -> str:
    """What a form left of a number at its end: the 1 of `1,048,576` or of `1M` is another number."""
    if found.end(name) != found.end() or _NUMBER.fullmatch(found[name]) is None:
        return ""
    rest = _REST_OF_NUMBER.match(found.string, found.end())
    return "" if rest is None else rest[0]


def unwrapped(line: str) -> tuple[str | None, str]:
    """(whose line it was, if a container tool said it; the line without its prefix and wrapping)."""
    line = line.rstrip("\r\n")
    if line.startswith('{"log":'):
        line = _of_json_file(line)
    whose = _WHOSE.match(line)
    if whose is None:
        return None, line
    return whose[1] or whose[2], line[whose.end() :]


def whose_in(block: bytes) -> set[str]:
    """Everybody whose lines are in a block, if its first line says whose it is."""
    if _EVERY_WHOSE.match(block) is None:
        return set()
    return {(pod or container).decode() for pod, container in _EVERY_WHOSE.findall(block)}


def _of_json_file(line: str) -> str:
    """Docker's json-file driver keeps each line as the field `log` of an object."""
    try:
        data: object = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        return line
    text = data.get("log") if isinstance(data, dict) else None
    return text.rstrip("\r\n") if isinstance(text, str) else line
