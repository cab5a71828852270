"""The names of the formats that a run can be converted to.

Rules it keeps: it names them alone, so that a command line can list them without loading any.
"""

from enum import StrEnum, unique


@unique
class Format(StrEnum):
    """What a run can be converted to."""

    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    HTML = "html"
    TERMINAL = "terminal"
