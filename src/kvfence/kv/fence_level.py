"""How much of the fence is up: the one setting that says which checks run.

Each level does what the one before it does, and more. The protocol's own rules (leases, quiet before
free, capacity) are not a level: they always hold.
"""

from enum import Enum, unique


@unique
class FenceLevel(Enum):
    """`sealed` is the default; `off` is for measuring, and only with the switch that says it is unsafe."""

    OFF = "off"
    CONTRACT = "contract"
    SEALED = "sealed"
    PARANOID = "paranoid"

    @property
    def checks_manifest(self) -> bool:
        """Decode starts a row only when the writer's manifest equals the reservation."""
        return self is not FenceLevel.OFF

    @property
    def seals_pages(self) -> bool:
        """Pages are stamped on lease, sealed by the writer and verified on hand-over."""
        return self in (FenceLevel.SEALED, FenceLevel.PARANOID)

    @property
    def guards_steps(self) -> bool:
        """Each step compares its block tables with the owner records and trailers, before and after."""
        return self in (FenceLevel.SEALED, FenceLevel.PARANOID)

    @property
    def digests_own_pages(self) -> bool:
        """Decode digests the pages that it fills itself, so that the sweep can check them too."""
        return self is FenceLevel.PARANOID

    @property
    def sweeps_pages(self) -> bool:
        """Each step digests a bounded sample of sealed pages again."""
        return self is FenceLevel.PARANOID

    @property
    def scrubs_pages(self) -> bool:
        """A page is zeroed when it becomes free."""
        return self is FenceLevel.PARANOID

    @property
    def needs_unsafe_switch(self) -> bool:
        """The level leaks when anything else is wrong, so the operator says twice that it is wanted."""
        return self is FenceLevel.OFF
