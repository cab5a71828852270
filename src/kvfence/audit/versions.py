"""Versions of engines, compared as versions; what is no version compares with nothing."""

import re

from packaging.version import InvalidVersion, Version

_LEADING = re.compile(r"v?(\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.(?:post|dev)\d+)*)(?:[+\-].*)?", re.IGNORECASE)


def parsed(text: str | None) -> Version | None:
    """Return the version, or None: builds and branches (`main`, `b9265`) are no versions."""
    if text is None:
        return None
    try:
        return Version(text)
    except InvalidVersion:
        # Builds of a vendor: the part that is ordered, `0.19.0` of `0.19.0-ascend`.
        found = _LEADING.fullmatch(text.strip())
        return None if found is None else Version(found[1])


def is_below(text: str, bound: str) -> bool | None:
    """Whether a version is below a bound. None: it is no version.

    Release candidates and development builds of the bound itself count as below it: nobody says what of it
    they have.
    """
    version = parsed(text)
    return None if version is None else version < Version(bound)


def is_within(text: str, *, first: str | None, fixed: str | None) -> bool | None:
    """Whether `first` ≤ version < `fixed`; a bound that is None is open. None: it is no version."""
    version = parsed(text)
    if version is None:
        return None
    starts = first is None or version >= Version(first)
    return starts and (fixed is None or version < Version(fixed))
