"""The report's parts about an experiment and its file: phases that were marked, stretches of a recording that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuimon.draw.format import age, duration, spread
from tuimon.draw.text import clean
from tuimon.model import Model
from tuimon.report.gaps import Gaps
from tuimon.report.phrases import Facts, many

THE_END = "the end of the recording"
"""By this name it is said that a recording was cut off."""

RULE = (
    "a step belongs to the phase in which it begins; median [p10-p90] of its last 512 steps, those with a compilation in them "
    "included; compile_s and recompiles are of compilations that began in it"
)


def phases(model: Model) -> list[Facts]:
    """`phases[]`, in their order; empty where none was marked."""
    found = []
    for phase in model.phases.all:
        summary = phase.summary
        compiled = [one for one in model.compilations if not one.before_attach and phase.holds(one.began_ns)]
        known = [one.total_s for one in compiled if one.total_s is not None]
        again = [one for one in model.recompiles if not one.compilation.refused and phase.holds(one.compilation.began_ns)]
        found.append(
            {
                "name": phase.name,
                "planned": phase.planned or None,
                "first_step": phase.first_step,
                "last_step": phase.last_step,
                "n": summary.n,
                "median": summary.median,
                "p10": summary.p10,
                "p90": summary.p90,
                "compile_s": float(sum(known)),
                "recompiles": len([one for one in again if not one.compilation.before_attach]),
            }
        )
    return found


def recording(model: Model, file: Mapping[str, Any] | None, gaps: Gaps) -> Facts | None:
    """`recording`: whether all of it is there; None for what is none."""
    cut = model.coverage.not_available.get(THE_END)
    if not (cut or model.recorded.gaps or (file is not None and file["kind"] == "recording")):
        return None
    attached = model.target.attached_ns or 0
    if any(one.rows is None for one in model.recorded.gaps):
        gaps.add("recording.gaps.rows", "how many samples were in a stretch that is damaged or was dropped is not always known")
    return {
        "whole": cut is None,
        "note": cut,
        "gaps": [
            {
                "from": (one.from_ns - attached) / 1e9,
                "until": (one.until_ns - attached) / 1e9,
                "rows": one.rows,
                "why": one.why,
            }
            for one in model.recorded.gaps
        ],
    }


# ------------------------------------------------------------------------------------------------- words


def phase_lines(phases: list[Facts]) -> list[str]:
    """`steady (200 steps): 200 steps, 12.1 ms [11-14 ms], no recompile`."""
    lines = []
    for one in phases:
        times = "" if one["median"] is None else f", {duration(one['median'])} {spread(one['p10'], one['p90'])}"
        planned = f" ({one['planned']} planned)" if one["planned"] else ""
        where = "" if one["last_step"] is None else f" (from step {one['first_step']} to {one['last_step']})"
        compiled = f", {duration(one['compile_s'])} of compilation" if one["compile_s"] else ""
        again = f", {many(one['recompiles'], 'recompile')}" if one["recompiles"] else ""
        lines.append(clean(f"{one['name']}{planned}: {many(one['n'], 'step')}{where}{times}{compiled}{again}"))
    return lines


def recording_lines(recording: Facts | None) -> list[str]:
    """What of a recording is not there; nothing where all of it is."""
    if recording is None:
        return []
    lines = [clean(recording["note"])] if recording["note"] else []
    for gap in recording["gaps"]:
        rows = "" if gap["rows"] is None else f", {many(gap['rows'], 'sample')}"
        lines.append(clean(f"not there: from {age(gap['from'])} to {age(gap['until'])} after its begin{rows}: {gap['why']}"))
    return lines
