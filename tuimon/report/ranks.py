"""The report's part about several processes that were watched at once: one row each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuimon.model import Model
from tuimon.model.ranks.lateness import Lateness
from tuimon.model.ranks.verdicts import Skew
from tuimon.model.recorded import NOT_IN_FILE
from tuimon.model.slow.naming import sentence
from tuimon.report.gaps import Gaps

MOST_SLOW = 50
"""The latest slow steps that are listed for each of several ranks; the first one's are all in `slow_steps`."""
BESIDE = ("lateness", "late_in", "slow_compared", "waits_for", "waited", "compile_skew")
"""What is known of a rank only beside others. `waits_for` is None also where it has waited for nobody."""
RULE = (
    "late: after the first of the ranks at the same collective of a step (its latest one), or, where no collective of Python "
    "code is seen and their steps end together, at the begin of the backward; median and p90 of the last 256 steps"
)


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
    key: int = -1
    """What `lateness` calls it."""
    lateness: Lateness | None = None
    """What is known of the ranks of its job beside each other; None where it is none of several."""


def state(model: Model) -> str:
    """How it stands with one process: "attached", "attaching", "exited", "lost", "detached" or "refused"; of a file of another
    tool "read"."""
    target = model.target
    if target.ended == "detached" and target.how == "file":
        return "read"
    if target.ended is not None:
        return target.ended
    return "attached" if target.attached_ns is not None else "attaching"


def rows(watched: Sequence[Watched], gaps: Gaps) -> list[dict[str, Any]]:
    """`ranks[]`, in the order in which they are given."""
    found = []
    for one in watched:
        row = _row(one, {other.key: other for other in watched})
        for field in ("step", "step_median", "compile_s", "breaks", "recompiles"):
            if row[field] is None:
                gaps.add(f"ranks[{one.label}].{field}", _why_nothing(one.model, field))
        if row["slow_steps"] is None:
            gaps.add(f"ranks[{one.label}].slow_steps", one.model.steps.why_not or _why_nothing(one.model))
        found.append(row)
    alone = {one.label: _why_not_compared(one) for one, row in zip(watched, found, strict=True) if row["lateness"] is None}
    if len(alone) == len(watched):  # none of them: one reason, that of one which tuimon was attached to
        attached = [one.label for one in watched if one.model.target.attached_ns is not None]
        alone = {"": alone[attached[0] if attached else watched[0].label]}
    for label, why in alone.items():
        for field in BESIDE:
            gaps.add(f"ranks[{label}].{field}", why)
    for lateness in compared(watched):
        if lateness.by_backward:
            gaps.add("ranks[].collectives", BY_BACKWARD)
        if lateness.clocks:
            gaps.add("ranks[].clocks", lateness.clocks)
    if any("cuda" in device.lower() or "nvidia" in device.lower() for one in watched for device in one.model.target.devices):
        gaps.add("ranks[].waiting on the device", ON_DEVICE)
    return found


BY_BACKWARD = (
    "DistributedDataParallel and collectives of compiled graphs meet in C++, where tuimon sees none: ranks are compared "
    "by when each began its backward; who is slow within the backward is not told"
)
ON_DEVICE = "NCCL's collectives return at once: lateness is that of the call on the host, and waiting on the device is not seen"


def compared(watched: Sequence[Watched]) -> list[Lateness]:
    """What is known of ranks beside each other, once for each job."""
    return list({id(one.lateness): one.lateness for one in watched if one.lateness is not None}.values())


def verdicts(watched: Sequence[Watched]) -> list[str]:
    """`ranks_verdict`: a sentence for each rank that others wait for, most costly first."""
    found = [verdict for lateness in compared(watched) for verdict in lateness.verdicts()]
    return [verdict.sentence for verdict in sorted(found, key=lambda one: -one.cost_s)]


def named(rows: Sequence[dict[str, Any]]) -> tuple[str, str, list[dict[str, Any]]]:
    """("Ranks", "rank", rows) for those of one job: each has a number of its own, and the same command.

    Else ("Processes", "process", rows without numbers, so that their labels stand for them).
    """
    numbers = {row["rank"] for row in rows}
    commands = {_OWN_PART.sub("rank", row["command"]) for row in rows if row["command"] is not None}
    if len(numbers) == len(rows) and None not in numbers and len(commands) < 2:
        return "Ranks", "rank", list(rows)
    return "Processes", "process", [{**row, "rank": None} for row in rows]


_OWN_PART = re.compile(r"rank[_-]?\d+\w*")
"""What the names of logs have of their rank's own, and command lines too."""


def _row(one: Watched, others: dict[int, Watched]) -> dict[str, Any]:
    model = one.model
    target, steps = model.target, model.steps.durations.summary
    stepped = target.attached_ns is not None and not model.recorded.missing("steps")
    known = target.attached_ns is not None and not model.recorded.missing("compiles")
    compiled = [one.total_s for one in model.compilations if one.total_s is not None]
    return {
        "rank": _number(one),
        "label": one.label,
        "pid": one.pid,
        "host": one.host,
        "command": target.command or None,
        "state": state(model),
        "why": target.ended_detail or target.attaching,
        "step": {"n": model.steps.n, "median": steps.median, "p10": steps.p10, "p90": steps.p90} if stepped else None,
        "step_median": steps.median,
        **_beside(one, others),
        "slow_steps": _slow(model) if model.steps.source is not None else None,
        "compile_s": sum(compiled) if known else None,
        "breaks": sum(boundary.breaks for boundary in model.boundaries.values()) if known and not _no_breaks(model) else None,
        "recompiles": sum(1 for one in model.recompiles if not one.compilation.refused) if known else None,
    }


def _number(one: Watched) -> int | None:
    return one.model.target.rank if one.model.target.rank is not None else one.rank


def _beside(one: Watched, others: dict[int, Watched]) -> dict[str, Any]:
    """What it is beside the others; times in seconds, all of it None where they were not compared."""
    found = one.lateness.of(one.key) if one.lateness is not None else None
    if found is None or found.median_ns is None or found.p90_ns is None or found.last_ns is None:
        return dict.fromkeys(BESIDE)
    other = others.get(found.waits_for) if found.waits_for is not None else None
    return {
        "lateness": {"n": found.n, "median": found.median_ns / 1e9, "p90": found.p90_ns / 1e9, "last": found.last_ns / 1e9},
        "late_in": found.late_in,
        "slow_compared": found.slow_n,
        "waits_for": _number(other) if other is not None else None,
        "waited": found.waited_ns / 1e9,
        "compile_skew": _skew(found.skew),
    }


def _skew(skew: Skew | None) -> dict[str, Any]:
    """What it compiled while others waited: how often, for how long beyond theirs, and the longest time."""
    if skew is None:
        return {"n": 0, "total": 0.0, "longest": None}
    longest = {
        "step": skew.step,
        "compile": skew.compile_ns / 1e9,
        "waiting": skew.waiting,
        "waited": skew.waited_ns / 1e9,
        "in": skew.op,
        "detail": skew.words or None,
    }
    return {"n": skew.n, "total": skew.total_ns / 1e9, "longest": longest}


def _slow(model: Model) -> list[dict[str, Any]]:
    offset = model.wall_offset_s
    return [
        {
            "index": one.account.index,
            "at": None if offset is None else one.account.begin_ns / 1e9 + offset,
            "duration": one.account.took_ns / 1e9,
            "cause": one.causes[0].cause,
            "causes": [{"cause": cause.cause, "share": cause.share, "detail": cause.detail} for cause in one.causes],
            "detail": one.causes[0].detail,
            "named": one.named,
            "sentence": sentence(one),
        }
        for one in list(model.steps.slow)[-MOST_SLOW:]
    ]


def _why_not_compared(one: Watched) -> str:
    target = one.model.target
    if target.attached_ns is None:
        return "tuimon was not attached to it"
    if one.model.recorded.missing("steps"):
        return one.model.recorded.missing("steps")
    if target.how == "file" and (target.rank is None or target.world_size is None):
        return f"{NOT_IN_FILE}: it does not tell which rank it is of, and of how many"
    if target.rank is None or (target.world_size or 1) < 2:
        return "it is no rank of a distributed job, as far as can be told"
    if one.lateness is None:
        return "no other rank of its job was watched, or two processes have the same rank: these may be two jobs"
    if one.model.steps.source is None:
        return one.model.steps.why_not or "no step has been seen since the attach"
    return (
        "no step was seen in which it met another rank: no collective of Python code that both called, and no backwards that "
        "end together"
    )


def _no_breaks(model: Model) -> str:
    """Why a file does not tell of graph breaks; "" where it does."""
    why = model.coverage.not_available.get("boundaries", "")
    return why if why.startswith(NOT_IN_FILE) else ""


def _why_nothing(model: Model, field: str = "step") -> str:
    if model.target.attached_ns is None:
        return "tuimon was not attached to it"
    if field in ("compile_s", "breaks", "recompiles"):
        return model.recorded.missing("compiles") or _no_breaks(model)
    return model.recorded.missing("steps") or "no step has been timed"
