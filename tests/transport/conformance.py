"""The conformance suite of `kvfence.transport`: what every implementation must do, ours and a third party's.

    from tests.transport.conformance import TransportConformance

    class TestMine(TransportConformance):
        factory = "my_package.transport:MyTransport"

The factory is called without arguments, or with `pause=hook` (a `PagePause`: to be called by the writer's
thread when half of a page has been written). It is named by a string, since the tests that kill and stop
processes import it in a process of their own. The suite asks for nothing that only one transport could do:
where transports differ (what proves a cut, and when) it states what must hold either way, and the module of
the implementation adds what is its own.
"""

from tests.transport.conform_admission import AdmissionConformance
from tests.transport.conform_cut import CutConformance
from tests.transport.conform_processes import ProcessConformance
from tests.transport.conform_writing import WritingConformance


class TransportConformance(WritingConformance, AdmissionConformance, CutConformance, ProcessConformance):
    """All of it."""
