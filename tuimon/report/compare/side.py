"""One of the two runs that are compared: its steps, and what of it belongs to a step."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property

from tuimon.model import Model
from tuimon.model.parts import Boundary, Compilation, Region
from tuimon.model.phases_marked import MarkedPhase
from tuimon.model.statistics import WINDOW
from tuimon.model.steps.parts import CATEGORIES, StepAccount

BESIDE_STEPS = 2.0
"""Readings may span so many times what the steps do: those next to a short phase tell of other time, too."""
WITHOUT, WITH = "without a compilation", "with a compilation"


@dataclass
class Side:
    """A run, or one phase of it."""

    model: Model
    name: str
    kind: str
    """"recording", "torch_trace", "kineto", "ncu"."""
    phase: str | None = None
    ranks: int = 1
    """How many ranks its file or folder holds; this is one of them."""
    marked: MarkedPhase | None = field(init=False)
    """The phase, the last one of that name; None where none was asked for, or there is none."""

    def __post_init__(self) -> None:
        named = [one for one in self.model.phases.all if one.name == self.phase]
        self.marked = named[-1] if named and self.phase is not None else None

    @cached_property
    def population(self) -> str:
        """Which steps are compared: those without a compilation; where there is none of them, those with one."""
        return WITH if any(one.compiled for one in self._accounts) and all(one.compiled for one in self._accounts) else WITHOUT

    @cached_property
    def steps(self) -> list[StepAccount]:
        """The latest whole steps of that population, slow ones among them; oldest first."""
        wanted = self.population == WITH
        return [one for one in self._accounts if one.compiled is wanted][-WINDOW:]

    @cached_property
    def _accounts(self) -> list[StepAccount]:
        if self.phase is not None:
            latest = {one.index: one for one in self.model.steps.accounts}  # some were corrected later
            found = [latest.get(one.index, one) for one in self.marked.accounts] if self.marked is not None else []
        else:
            found = list(self.model.steps.accounts)
        return [one for one in found if one.complete and one.took_ns > 0]

    @property
    def took(self) -> list[int]:
        """How long each of the steps took, ns."""
        return [one.took_ns for one in self.steps]

    def category(self, name: str) -> list[int]:
        """What each of the steps had of a category, ns."""
        at = CATEGORIES.index(name)
        return [one.parts[at] for one in self.steps]

    @cached_property
    def waited(self) -> float | None:
        """For what part of these steps the job's busiest thread was ready to run and had no core; None where that was not read.
        Other programs of its machine do that, and no change of its own."""
        if not self.steps:
            return None
        begin, end = self.steps[0].begin_ns, self.steps[-1].end_ns
        found: tuple[float, float] | None = None
        for readings in self.model.slowness.outside.threads.values():
            told = [one for one in readings if one.wait_s is not None and one.run_s is not None]
            before, behind = [one for one in told if one.t_ns <= begin], [one for one in told if one.t_ns >= end]
            if not told:
                continue
            first, last = (before or told)[-1 if before else 0], (behind or told)[0 if behind else -1]
            span = last.t_ns - first.t_ns
            both = min(last.t_ns, end) - max(first.t_ns, begin)
            if span <= 0 or 2 * both < end - begin or span > BESIDE_STEPS * (end - begin):
                continue
            ran = (last.run_s or 0.0) - (first.run_s or 0.0)
            waited = max(0.0, (last.wait_s or 0.0) - (first.wait_s or 0.0)) * 1e9 / (last.t_ns - first.t_ns)
            found = max(found or (0.0, 0.0), (ran, min(1.0, waited)))
        return None if found is None else found[1]

    @property
    def steady_n(self) -> int:
        """Steps without a compilation in all of the run: what counts a step are held against."""
        return self.model.steps.steady_n

    @property
    def n(self) -> int:
        """Steps of the run, or of the phase, those with a compilation in them included."""
        return self.model.steps.n if self.marked is None else self.marked.n

    @property
    def compilations(self) -> list[Compilation]:
        """Those that were watched, of the run or of the phase."""
        found = [one for one in self.model.compilations if not one.before_attach]
        return [one for one in found if self.marked is None or self.marked.holds(one.began_ns)]

    @property
    def no_steps(self) -> str:
        """Why there is no step to compare; empty where steps are told."""
        steps, recorded = self.model.steps, self.model.recorded
        if steps.source is not None:
            return ""
        return recorded.missing("steps") or steps.why_not or "no step was seen"

    def calls_per_step(self, region: Region) -> float | None:
        """How often a region is called in a step without a compilation; None where there is no step, or calls are not told."""
        if not self.steady_n or self.model.folded.begun or self.model.recorded.missing("calls"):
            return None
        return region.share.count / self.steady_n

    def crossings_per_step(self, boundary: Boundary) -> float | None:
        """The same of a boundary; None where its crossings are not counted."""
        if boundary.crossings is None or not self.steady_n or self.model.folded.begun:
            return None
        return boundary.share.count / self.steady_n


def tail(file: str) -> str:
    """The last two parts of a path: the same source in two checkouts has the same."""
    return "/".join(file.replace(os.sep, "/").split("/")[-2:])
