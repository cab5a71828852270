"""What an entry of the registry of codes holds, and the addresses of what it refers to.

Rules it keeps: a reference is either an address, or a name that `REFERENCES` explains. It says nothing of one
run: what was seen stands in the finding.
"""

from dataclasses import dataclass

from kvfence.report.finding import Severity

AISVS = "OWASP AISVS 5.5.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One kind of finding.

    `what` is what it means for whoever runs the server, `why` how it comes about, `mend` what to do.
    `severity` is what a finding has when nothing in its evidence says otherwise.
    """

    number: str
    title: str
    severity: Severity
    what: str
    why: str
    mend: str
    references: tuple[str, ...]

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """The references that are numbers of the CWE list."""
        return tuple(reference for reference in self.references if reference.startswith("CWE-"))


# name → (title, address)
REFERENCES: dict[str, tuple[str, str]] = {
    AISVS: (
        "AI Security Verification Standard, control 5.5.5",
        "https://github.com/OWASP/AISVS/pull/210",
    ),
} | {
    f"CWE-{number}": (title, f"https://cwe.mitre.org/data/definitions/{number}.html")
    for number, title in (
        (20, "Improper Input Validation"),
        (200, "Exposure of Sensitive Information to an Unauthorized Actor"),
        (203, "Observable Discrepancy"),
        (208, "Observable Timing Discrepancy"),
        (226, "Sensitive Information in Resource Not Removed Before Reuse"),
        (306, "Missing Authentication for Critical Function"),
        (353, "Missing Support for Integrity Check"),
        (362, "Concurrent Execution using Shared Resource with Improper Synchronization"),
        (393, "Return of Wrong Status Code"),
        (400, "Uncontrolled Resource Consumption"),
        (416, "Use After Free"),
        (440, "Expected Behavior Violation"),
        (488, "Exposure of Data Element to Wrong Session"),
        (497, "Exposure of Sensitive System Information to an Unauthorized Control Sphere"),
        (524, "Use of Cache Containing Sensitive Information"),
        (636, "Not Failing Securely"),
        (639, "Authorization Bypass Through User-Controlled Key"),
        (668, "Exposure of Resource to Wrong Sphere"),
        (672, "Operation on a Resource after Expiration or Release"),
        (694, "Use of Multiple Resources with Duplicate Identifier"),
        (754, "Improper Check for Unusual or Exceptional Conditions"),
        (755, "Improper Handling of Exceptional Conditions"),
        (770, "Allocation of Resources Without Limits or Throttling"),
        (778, "Insufficient Logging"),
        (908, "Use of Uninitialized Resource"),
        (1188, "Initialization of a Resource with an Insecure Default"),
        (1395, "Dependency on Vulnerable Third-Party Component"),
    )
}


def title_of(reference: str) -> str:
    """Return what a reference is called; an address is its own title."""
    return REFERENCES[reference][0] if reference in REFERENCES else reference


def address_of(reference: str) -> str | None:
    """Return where it can be read, if it is anywhere."""
    if reference in REFERENCES:
        return REFERENCES[reference][1]
    return reference if reference.startswith(("https://", "http://")) else None
