"""The report's part about several processes that were watched at once: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuimon.model import Model
from tuimon.report.gaps import Gaps


@dataclass(frozen=True, slots=True)
class Watched:
    """One of the processes. What is not known is None."""

    label: str
    """What to call it: "rank 3", "4711"."""
    rank: int | None
    pid: int | None
    host: str | None
    """None: the host that tuimon ran on."""
    model: Model


def state(model: Model) -> str:
    """How it stands with one process: "attached", "attaching", "exited", "lost", "detached" or "refused"."""
    target = model.target
    if target.ended is not None:
        return target.ended
    return "attached" if target.attached_ns is not None else "attaching"


def rows(watched: Sequence[Watched], gaps: Gaps) -> list[dict[str, Any]]:
    """`ranks[]`, in the order in which they are given."""
    why = "the time lines of ranks are compared in a later version"
    gaps.add("ranks[].lateness", why)
    gaps.add("ranks[].compile_skew", why)
    found = []
    for one in watched:
        row = _row(one)
        for field in ("step", "step_median", "compile_s", "breaks", "recompiles"):
            if row[field] is None:
                gaps.add(f"ranks[{one.label}].{field}", _why_nothing(one.model))
        found.append(row)
    return found


def named(rows: Sequence[dict[str, Any]]) -> tuple[str, str, list[dict[str, Any]]]:
    """("Ranks", "rank", rows) for those of one job: each has a number of its own, and the same command.

    Else ("Processes", "process", rows without numbers, so that their labels stand for them).
    """
    numbers = {row["rank"] for row in rows}
    commands = {row["command"] for row in rows if row["command"] is not None}
    if len(numbers) == len(rows) and None not in numbers and len(commands) < 2:
        return "Ranks", "rank", list(rows)
    return "Processes", "process", [{**row, "rank": None} for row in rows]


def _row(one: Watched) -> dict[str, Any]:
    model = one.model
    target, steps = model.target, model.steps.durations.summary
    known = target.attached_ns is not None
    compiled = [one.total_s for one in model.compilations if one.total_s is not None]
    return {
        "rank": target.rank if target.rank is not None else one.rank,
        "label": one.label,
        "pid": one.pid,
        "host": one.host,
        "command": target.command or None,
        "state": state(model),
        "why": target.ended_detail or target.attaching,
        "step": {"n": model.steps.n, "median": steps.median, "p10": steps.p10, "p90": steps.p90} if known else None,
        "step_median": steps.median,
        "lateness": None,
        "compile_skew": None,
        "compile_s": sum(compiled) if known else None,
        "breaks": sum(boundary.breaks for boundary in model.boundaries.values()) if known else None,
        "recompiles": sum(1 for one in model.recompiles if not one.compilation.refused) if known else None,
    }


def _why_nothing(model: Model) -> str:
    if model.target.attached_ns is None:
        return "tuimon was not attached to it"
    return "no step has been timed"
