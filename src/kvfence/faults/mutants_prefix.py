"""The prefix index's rules, got wrong: keys, domains, pins, and when a page is shown.

Each class is one fault of the catalogue and overrides the decisions that its entry names. It holds no
state and inherits from `Decisions` alone, so that any set of them can be mixed into one class.
"""

from kvfence.protocol import Decisions

KEY_BYTES = 1


class ChainDropped(Decisions):
    """A page's key covers its own tokens, and not what stands before them."""

    def chains_prefix(self) -> bool:
        """No."""
        return False

    def compares_prefix(self) -> bool:
        """The key is believed."""
        return False


class ShortKey(Decisions):
    """Keys have one byte, and a hit rests on the key alone."""

    def prefix_digest(self, data: bytes) -> bytes:
        """The first byte of the right one."""
        return super().prefix_digest(data)[:KEY_BYTES]

    def compares_prefix(self) -> bool:
        """The key is believed."""
        return False


class DomainIgnored(Decisions):
    """The domain reaches the index and is left out of its keys."""

    def prefix_domain(self, domain: str) -> str:  # noqa: ARG002
        """The same for everybody."""
        return ""


class PublishedEarly(Decisions):
    """Pages are shown to others when they are leased, before anything is computed into them."""

    def publishes(self, *, sealed: bool) -> bool:  # noqa: ARG002
        """At once."""
        return True


class UnpinnedMatch(Decisions):
    """What a match found may be evicted before it is used."""

    def pins_match(self) -> bool:
        """No."""
        return False
