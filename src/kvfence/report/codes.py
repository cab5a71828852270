"""The registry of codes: what a finding's code means, in the words of the docs page and of `kvfence explain`.

Rules it keeps:
- A number is never given to another meaning. 1xx is the audit's, 2xx the check's.
- What stands here is written once: `docs/codes/` and every report are made from it.
- Nothing here is a verdict on a server: entries say what was seen, never that nothing can happen.
"""

from difflib import get_close_matches

from kvfence.protocol.errors import OperatorError
from kvfence.report.codes_audit import FIGURE_CODES
from kvfence.report.codes_audit_settings import SETTING_CODES
from kvfence.report.codes_check import CROSSING_CODES
from kvfence.report.codes_check_honesty import HONESTY_CODES
from kvfence.report.codes_entry import AISVS, REFERENCES, Code, address_of, title_of

__all__ = ["AISVS", "CODES", "REFERENCES", "Code", "address_of", "code_named", "title_of"]

CODES: dict[str, Code] = {
    code.number: code
    for code in sorted(
        (*FIGURE_CODES, *SETTING_CODES, *CROSSING_CODES, *HONESTY_CODES), key=lambda code: code.number
    )
}


def code_named(name: str) -> Code:
    """Return the code of that number. Raises OperatorError with a suggestion."""
    wanted = name.strip().upper()
    code = CODES.get(wanted if wanted.startswith("KVF") else f"KVF{wanted}")
    if code is None:
        close = get_close_matches(wanted, CODES, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise OperatorError(f"there is no code {name!r}: {hint}kvfence explain lists them all")
    return code
