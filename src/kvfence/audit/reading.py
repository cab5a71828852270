"""What a reader makes of what a node said: figures, each with where it was read, and words on what was not.

Rules it keeps:
- A figure that was not read is not there. The first source that is put wins, so a reader puts what it trusts
  most first.
- Where a figure stands in a file, its place is kept, so that a finding can point to the line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvfence.audit.log_scan import Hit, Hits
from kvfence.audit.page import Page
from kvfence.report import Figure, Place

POOL = "pool_tokens"
PAGE = "page_tokens"
CONTEXT = "context_tokens"
LARGEST = "largest_request_tokens"
ADVERTISED = "advertised_tokens"
CONCURRENCY = "concurrency"
SWA_POOL = "swa_pool_tokens"
DRAFT_POOL = "draft_pool_tokens"


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of one node. `part`: its name, where one address speaks for several nodes.

    `doubt`: why its figures may be those of several servers, so that they are no pass.
    """

    engine: str | None
    version: str | None = None
    role: str | None = None
    part: str | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubt: str | None = None

    def number(self, name: str) -> int | None:
        """A figure that is a whole number."""
        figure = self.figures.get(name)
        value = None if figure is None else figure.value
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def value(self, name: str) -> int | float | str | bool | None:
        """A figure, whatever it is."""
        figure = self.figures.get(name)
        return None if figure is None else figure.value


@dataclass(frozen=True, slots=True)
class Material:
    """All that one node said: its pages, what is trusted most first, and what its log's forms left."""

    pages: tuple[Page, ...] = ()
    hits: Hits = field(default_factory=Hits)


@dataclass(slots=True)
class Notebook:
    """Collects a reading; belongs to the reader that fills it."""

    engine: str | None
    version: str | None = None
    role: str | None = None
    part: str | None = None
    figures: dict[str, Figure] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    doubt: str | None = None

    def put(self, name: str, value: float | str | bool | None, read_from: str) -> None:  # noqa: FBT001
        """Write a figure down, unless it is None or stands there already."""
        if value is not None and name not in self.figures:
            self.figures[name] = Figure(value=value, read_from=read_from)

    def put_of(self, page: Page, name: str, value: float | str | bool | None, field_name: str) -> None:  # noqa: FBT001
        """Write down what a field of a page says."""
        self.put(name, value, page.named(field_name))

    def put_line(self, log: str, hit: Hit, name: str, value: float | str | bool | None) -> None:  # noqa: FBT001
        """Write down what a line of a log says, with its place."""
        if value is not None and name not in self.figures:
            self.put(name, value, f"{log}:{hit.line}")
            self.places[name] = Place(path=log, line=hit.line)

    def has(self, name: str) -> bool:
        """Whether the figure was read already."""
        return name in self.figures

    def number(self, name: str) -> int | None:
        """A whole number that was read already."""
        return self.done().number(name)

    def note(self, text: str) -> None:
        """Say something that whoever reads the audit should know."""
        if text not in self.notes:
            self.notes.append(text)

    def done(self) -> Reading:
        """The reading as it is now."""
        return Reading(
            engine=self.engine,
            version=self.version,
            role=self.role,
            part=self.part,
            figures=dict(self.figures),
            places=dict(self.places),
            notes=tuple(self.notes),
            doubt=self.doubt,
        )
