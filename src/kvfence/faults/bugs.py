"""The public bugs that the faults stand for: number in our collection, project, reference, address.

What is said of them is what their reporters and authors claim; the class is our own judgement, and none
was reproduced here. It is data: look at the source before citing one.
"""

from kvfence.faults.bugs_of_reuse import BUGS_OF_REUSE
from kvfence.faults.bugs_of_transfer import BUGS_OF_TRANSFER
from kvfence.faults.fault import Bug

BUGS: dict[str, Bug] = {bug.number: bug for bug in (*BUGS_OF_TRANSFER, *BUGS_OF_REUSE)}
