"""The router's decisions, got wrong: what it promises, where it places, and to whom a token goes.

Each class is one fault of the catalogue and overrides the decisions that its entry names. It holds no
state and inherits from `Decisions` alone, so that any set of them can be mixed into one class.
"""

from collections.abc import Iterable

from kvfence.protocol import Decisions

ONE_DOMAIN = "everybody"


class AdmissionUnchecked(Decisions):
    """The configured context is promised, and every prefill node is taken for large enough."""

    def advertised_tokens(self, configured_tokens: int, smallest_pool_tokens: int) -> int:  # noqa: ARG002
        """Whatever was configured."""
        return configured_tokens

    def fits_node(self, needed_tokens: int, pool_tokens: int) -> bool:  # noqa: ARG002
        """Everything fits everywhere."""
        return True


class RecomputeOutgrowsPool(Decisions):
    """Only the prompt is counted: what an answer adds to it is forgotten."""

    def needed_tokens(self, prompt_tokens: int, max_tokens: int) -> int:  # noqa: ARG002
        """The first attempt's prompt."""
        return prompt_tokens


class OneDomain(Decisions):
    """All tenants share one domain."""

    def sharing_domain(self, domain: str) -> str:  # noqa: ARG002
        """The same for everybody."""
        return ONE_DOMAIN


class NewestStream(Decisions):
    """A token goes to the stream that was opened last."""

    def addressee(self, request: int, live: Iterable[int]) -> int:
        """The newest one."""
        return max(live, default=request)


class TwoAttempts(Decisions):
    """The earlier attempt is left running, and its tokens are taken for the present one's."""

    def aborts_before_next_attempt(self) -> bool:
        """No."""
        return False

    def accepts_token(self, position: int, expected_position: int, *, is_current_attempt: bool) -> bool:  # noqa: ARG002
        """Only the position is looked at."""
        return position == expected_position
