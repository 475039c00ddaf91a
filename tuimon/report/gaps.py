"""The list of what a report does not know. Whatever is null in it stands here too, with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from tuimon.model import Model
from tuimon.model.recorded import NOT_IN_FILE

_OF_FILES: Mapping[str, tuple[str, ...]] = {
    "calls": (
        "regions.calls", "regions.initial", "regions.steady", "regions.after_guard_change", "frames.calls",
        "frames.compiled_calls", "frames.eager_calls", "roofline.flop_known_for",
    ),
    "steps": (
        "steps.source", "steps.n", "steps.without_compilation", "steps.slow", "steps.breakdown", "slow_steps",
        "regions.share_of_step", "boundaries.per_step", "boundaries.share_of_step", "compiles.step",
    ),
    "crossings": ("boundaries.crossings", "boundaries.host", "boundaries.sync"),
    "device": ("regions.device", "boundaries.device_gap"),
    "gpu": ("gpu",),
    "host": ("host", "warmup.memory"),
    "compiles": (
        "compiles", "frames", "boundaries", "recompiles", "regions.initial", "steps.without_compilation", "warmup.compile_s",
        "warmup.caches", "warmup.over", "warmup.steps",
    ),
}  # fmt: skip
"""What kinds of files do not tell (`NotInFile.what`) -> the parts of the report that are not known for that reason."""

_OF_ANY_FILE: Mapping[str, str] = {
    **dict.fromkeys(("coverage.samples", "coverage.dropped", "coverage.hook_s"), "no hook of tuimon ran in the job"),
    "target.steps_before_attach": "nobody was attached",
}
"""What no file of another tool tells, with the reason."""


class Gaps:
    """Collects (what, why); the first reason given for a thing stays."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._whys: dict[str, str] = dict(known or {})

    @classmethod
    def of(cls, model: Model) -> Gaps:
        """What is known not to be known before a report is made."""
        gaps = cls(model.coverage.not_available)
        for what in model.recorded.absent:
            for place in _OF_FILES.get(what, ()):
                gaps.add(place, model.recorded.missing(what))
        if model.target.how == "file":
            for what, why in _OF_ANY_FILE.items():
                gaps.add(what, f"{NOT_IN_FILE}: {why}")
        return gaps

    def add(self, what: str, why: str) -> None:
        """Note that `what` (a place in the report, or the name of an instrument) is not known, because `why`."""
        self._whys.setdefault(what, why)

    def listed(self) -> list[dict[str, str]]:
        """As the report has it: [{what, why}, ..], in the order in which they came up."""
        return [{"what": what, "why": why} for what, why in self._whys.items()]
