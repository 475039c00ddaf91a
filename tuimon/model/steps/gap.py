"""What is kept behind the step of an optimizer, while it is not known yet where the loop turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from tuimon.model.steps.lanes import Lane
from tuimon.model.steps.turning import Item


@dataclass(slots=True)
class Gap:
    """Open from an optimizer's step that ends one of the job's until something says where the next one begins."""

    lane: Lane
    last: Item
    told: bool
    """There is no step that the listeners are still to be told of."""
    before: int
    """The instrument of the call that came last before the optimizer."""
    between: list[Item] = field(default_factory=list)
    passed: set[int] = field(default_factory=set)
    """The loops whose heads have been passed since."""
    first: Item | None = None
    """What would begin the next step, had the loop of the steps not been still to turn: an evaluation's call."""
    held: int = 0
    """So many of `between` came before it."""
