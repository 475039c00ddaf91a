"""The warm-up: until enough steps in a row went by without a compilation in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuimon.model.model import Model

WARM_STEPS = 10
"""So many steps in a row without a compilation, and the warm-up is over. A compilation after that is a late one."""


@dataclass(slots=True)
class Warmup:
    """How long it took, and what it did to memory."""

    in_a_row: int = 0
    """Steps without a compilation, in a row, up to now."""
    steps: int | None = None
    """Steps that had ended when it was over; None while it is not."""
    rss_first: int | None = None
    rss_over: int | None = None
    """The job's resident memory in bytes at the first reading, and when it was over."""

    def step(self, steady: bool, steps: int, rss: int | None) -> None:
        """A step has ended, the `steps`-th."""
        self.in_a_row = self.in_a_row + 1 if steady else 0
        if self.steps is None and self.in_a_row >= WARM_STEPS:
            self.steps, self.rss_over = steps, rss

    def anew(self) -> None:
        """Steps are counted anew."""
        self.in_a_row, self.steps, self.rss_over = 0, None, None


def warm(model: Model) -> bool:
    """Whether the warm-up is over."""
    return model.warmup.steps is not None
