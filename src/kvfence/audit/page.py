"""A page: what one address answered, or one saved file, parsed once; and careful looks into it.

Rules it keeps:
- Nothing that a server sends can raise here: what cannot be parsed is a page without data.
- A number is taken only if it is a plain whole number of a size that tokens can have; a bool, a negative one,
  a fraction or a text is no number. What is absent is None.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

TOKENS_MAX = 1 << 48  # no pool and no context is larger; what is, was misread
SAMPLES_MAX = 100_000
_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?[ \t]+([^\s{}]+)(?:[ \t]+-?\d+)?\s*\Z")
_WHOLE = re.compile(r"\d{1,15}|[1-9]\d{0,2}(?:,\d{3}){1,5}", re.ASCII)
# A comma stands between thousands alone: `0,65` is not 65, whatever country wrote it.
_DECIMAL = re.compile(r"(?:\d{1,15}|[1-9]\d{0,2}(?:,\d{3}){1,4})(?:\.\d{1,18})?", re.ASCII)
_LABEL = re.compile(r'(?<!\w)([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a metrics page."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Page:
    """`path` is where it was asked for, None for a file; `origin` is how a figure says where it was read.

    `data` is the parsed JSON or None; `samples` are those of a Prometheus page.
    """

    path: str | None
    origin: str
    data: object
    samples: tuple[Sample, ...] = ()

    def named(self, field: str) -> str:
        """Where a field of this page was read."""
        return f"{self.origin} {field}"

    def of_name(self, name: str) -> Iterator[Sample]:
        """The samples of one metric."""
        return (sample for sample in self.samples if sample.name == name)

    def has_metrics_of(self, prefix: str) -> bool:
        """Whether any metric's name begins so."""
        return any(sample.name.startswith(prefix) for sample in self.samples)


def page_of(path: str | None, origin: str, body: bytes) -> Page:
    """Parse a body: as JSON, else as Prometheus text; whichever fails is empty."""
    try:
        data: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Page(path, origin, None, tuple(_samples(body.decode("utf-8", "replace"))))
    return Page(path, origin, data)


def _samples(text: str) -> Iterator[Sample]:
    for number, line in enumerate(text.splitlines()):
        if number >= SAMPLES_MAX:
            return
        found = None if line.startswith("#") else _SAMPLE.match(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        yield Sample(found[1], dict(_LABEL.findall(found[2] or "")), value)


def field(data: object, *path: str) -> object:
    """What stands at this path of objects, or None."""
    for key in path:
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def items(data: object) -> tuple[object, ...]:
    """The items of a list, none of anything else."""
    return tuple(data) if isinstance(data, list) else ()


def has_fields(data: object, *names: str) -> bool:
    """Whether it is an object with all of these."""
    return isinstance(data, dict) and all(name in data for name in names)


def whole(value: object) -> int | None:
    """Return a whole number of tokens, pages or slots, or None for whatever else it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 < value <= TOKENS_MAX or value != int(value):
        return None
    return int(value)


def total(values: Iterable[float]) -> int | None:
    """Return the sum of counters as a whole number, or None where that is none: NaN, infinite, negative."""
    summed = sum(values)
    return int(summed) if 0 <= summed <= TOKENS_MAX else None


def whole_text(value: object) -> int | None:
    """Return the whole number that a text is, thousands separators allowed; None for whatever else it is."""
    if not isinstance(value, str) or _WHOLE.fullmatch(value) is None:
        return None
    return whole(int(value.replace(",", "")))


def decimal_text(value: object) -> float | None:
    """Return the decimal number that a text is, thousands separators allowed; None for anything else."""
    if not isinstance(value, str) or _DECIMAL.fullmatch(value) is None:
        return None
    return float(value.replace(",", ""))


def word(value: object) -> str | None:
    """Return a short text of printable characters, or None: a name, a version, never a document."""
    if not isinstance(value, str) or not value or len(value) > 100 or not value.isprintable():
        return None
    return value


def flag(value: object) -> bool | None:
    """Return a bool, or None for whatever else it is."""
    return value if isinstance(value, bool) else None


def least(values: Iterable[int | None]) -> int | None:
    """Return the smallest of the numbers that are there; None when there is none."""
    return min((value for value in values if value is not None), default=None)
