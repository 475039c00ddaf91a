"""The roofline as a person looks at it: what was chosen, and what is known, worked out anew only when the model has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuimon.draw.roofline import Axes
    from tuimon.model import Model
    from tuimon.roofline.ceilings import Ceiling
    from tuimon.roofline.points import Point, Roofline

Compute = Callable[["Model", "str | None", "str | None", bool], "Roofline"]
"""(model, boundary or None, name of a ceiling or None, whether the job runs on this host) -> what is known."""

WHOLE = "process"
"""The key of the point of the whole process."""

HYPOTHETICAL = "hypothetical"
"""The boundary of ceilings that are of no machine."""

_READ = ("roofline", "gpu", "target")
"""The sections of the model that it is made of."""


@dataclass(slots=True)
class Plane:
    """What a person has chosen of the roofline, kept across panels and pages."""

    compute: Compute | None = None
    """What makes a roofline of a model; None: nothing does."""
    reading: bool = False
    """The figures that it takes are being read: `compute` comes."""
    ceiling: str | None = None
    """The name of the chosen ceiling; None: the one that fits the points best."""
    boundary: str = ""
    """The chosen boundary; "": where each point's bytes mean most."""
    here: bool = True
    """Whether the job runs on this host."""
    trails: bool = True
    whole: bool = False
    """Only the point of the whole process."""
    axes: Axes | None = None
    """Those that the chart had last."""
    rows: dict[int, str] = field(default_factory=dict)
    """Line of the panel -> key of the point that stands there, as drawn last."""
    _of: tuple[Any, ...] | None = None
    _known: Roofline | None = None

    def roofline(self, model: Model) -> Roofline | None:
        """What is known of this model now, with the chosen ceiling selected."""
        if self.compute is None:
            return None
        of = (id(model), *(model.versions[section] for section in _READ), self.boundary, self.ceiling, self.here)
        if of != self._of:
            self._known, self._of = self.compute(model, self.boundary or None, self.ceiling, self.here), of
        return self._known

    def points(self, model: Model) -> tuple[Point, ...]:
        """The points that are shown."""
        known = self.roofline(model)
        if known is None:
            return ()
        if self.whole:
            return (known.process,) if known.process is not None else ()
        return known.points

    def count(self) -> int:
        """How many points there were when it was looked last."""
        return len(self._known.points) if self._known is not None else 0

    def ceilings(self, model: Model, declared: Sequence[Ceiling]) -> tuple[Sequence[Ceiling], int]:
        """The ceilings to choose from, and which is selected: the machine's own, else those that are declared."""
        known = self.roofline(model)
        if known is not None and known.ceilings:
            return known.ceilings, known.selected
        names = [one.name for one in declared]
        return declared, names.index(self.ceiling) if self.ceiling in names else 0

    def next_ceiling(self, model: Model, declared: Sequence[Ceiling]) -> str | None:
        """Select the next of the ceilings at the chosen boundary; gives its name, None where there is none."""
        ceilings, selected = self.ceilings(model, declared)
        there = [one.name for one in ceilings if not self.boundary or one.boundary == self.boundary]
        if not there:
            return None
        now = ceilings[selected].name if 0 <= selected < len(ceilings) else ""
        self.ceiling = there[(there.index(now) + 1) % len(there)] if now in there else there[0]
        return self.ceiling

    def next_boundary(self, model: Model) -> str | None:
        """Select the next memory boundary, and after the last one none; gives its name ("": none), None where there is none."""
        known = self.roofline(model)
        if known is None or not known.ceilings:
            return None
        names = list(dict.fromkeys(one.boundary for one in known.ceilings if one.boundary != HYPOTHETICAL))
        if not names:
            return None
        at = names.index(self.boundary) + 1 if self.boundary in names else 0
        self.boundary = names[at] if at < len(names) else ""
        self.ceiling = None
        return self.boundary
