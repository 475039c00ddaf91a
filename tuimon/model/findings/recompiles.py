"""Recompiles that go on, that come late, or that near their limit. One that happened once and is over is a row, no finding."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tuimon.model.about import About
from tuimon.model.findings.finding import Finding, many, seconds, shown
from tuimon.model.identity import plain_function
from tuimon.model.parts import Frame, Recompile
from tuimon.model.reading import Reading, readings

if TYPE_CHECKING:
    from tuimon.model.model import Model

STORM = 3
"""So many recompiles of one frame are more than a settling in."""
RECENT_STEPS = 100
"""A recompile within the last so many steps is not over yet."""
NEAR_LIMIT = 0.75
"""From this part of the limit on, a frame that still grows is near it."""
COSTLY_SHARE, COSTLY_S = 0.1, 5.0
"""Recompiles that took this part of the time of all steps, and at least so many seconds, are costly."""

Told = tuple[Recompile, Reading]


def find(model: Model) -> list[Finding]:
    """At most one for each frame that is not at its limit (that is a finding of its own)."""
    by_frame: dict[str, list[Told]] = {}
    for recompile, reading in zip(model.recompiles, readings(model), strict=True):
        if not recompile.compilation.refused:
            by_frame.setdefault(recompile.compilation.frame or "?", []).append((recompile, reading))
    found = []
    for key, told in by_frame.items():
        frame = model.frames.get(key)
        if frame is not None and frame.refused_compile_id is not None:
            continue
        one = _near_limit(model, frame, told) or _storm(model, told) or _late(model, told)
        if one is not None:
            found.append(one)
    return found


def _recent(model: Model, recompile: Recompile) -> bool:
    step = recompile.compilation.step
    if recompile.compilation.before_attach:
        return False
    return step is None or model.steps.n - step <= RECENT_STEPS


def _cost(told: list[Told]) -> float | None:
    known = [recompile.compilation.total_s for recompile, _ in told if recompile.compilation.total_s is not None]
    return sum(known) if known else None


def _near_limit(model: Model, frame: Frame | None, told: list[Told]) -> Finding | None:
    if frame is None or not frame.limit or len(frame.entries) < NEAR_LIMIT * frame.limit or len(told) < 2:
        return None
    if not _recent(model, told[-1][0]):
        return None
    if _behind_a_limit(model, frame):
        return None
    last = told[-1][1]
    in_use = f"{shown(frame.name)} has {len(frame.entries)} of {frame.limit} entries in use"
    goes_on = "the next recompile is refused" if len(frame.entries) >= frame.limit else "still grows"
    return Finding(
        kind="near limit",
        title=f"{in_use} and {goes_on}: {last.sentence}"
        if goes_on == "still grows"
        else f"{in_use}, {goes_on}: {last.sentence}",
        where=f"{frame.file}:{frame.line}",
        cost_s=_cost(told),
        evidence=_evidence(model, told),
        next_step=last.advice or "past the limit, calls that no entry fits run in eager: keep what changes the same",
        about=About("recompile", told[-1][0].key),
    )


def _behind_a_limit(model: Model, frame: Frame) -> bool:
    """Whether it goes on with a frame that is past its own limit: what runs there in eager never comes to it."""
    plain = plain_function(frame.function)
    return plain != frame.function and any(
        other.refused_compile_id is not None and (other.function, other.file) == (plain, frame.file)
        for other in model.frames.values()
    )


def _storm(model: Model, told: list[Told]) -> Finding | None:
    last, last_reading = told[-1]
    unexpected = [one for one in told if not one[1].expected]
    many_of_them = len(told) >= STORM and bool(unexpected)
    goes_on = len(told) > 1 and _recent(model, last) and last.compilation.late and _same(told[-2][1], last_reading)
    if not (many_of_them or goes_on or _costly(model, told)):
        return None
    compilation = last.compilation
    common = max((one[1] for one in reversed(told)), key=lambda reading: sum(_same(reading, other) for _, other in told))
    when = " before the attach" if all(recompile.compilation.before_attach for recompile, _ in told) else ""
    over = "" if _recent(model, last) or when else f", last in step {compilation.step}"
    return Finding(
        kind="recompile",
        title=f"{shown(compilation.function)} was compiled again {len(told)} times{when}{over}: {common.sentence}",
        where=f"{compilation.file}:{compilation.line}",
        cost_s=_cost(told),
        evidence=_evidence(model, told),
        next_step=common.advice or last_reading.advice or "keep what the guard names the same from call to call",
        about=About("recompile", last.key),
    )


def _late(model: Model, told: list[Told]) -> Finding | None:
    late = [(recompile, reading) for recompile, reading in told if recompile.compilation.late and not reading.expected]
    late = [one for one in late if _recent(model, one[0])]
    if not late:
        return None
    recompile, reading = late[-1]
    compilation = recompile.compilation
    step = "after the warm-up" if compilation.step is None else f"in step {compilation.step}, after the warm-up"
    cost = f", {seconds(compilation.total_s)}" if compilation.total_s is not None else ""
    return Finding(
        kind="late compile",
        title=f"{shown(compilation.function)} was compiled again {step}{cost}: {reading.sentence}",
        where=f"{compilation.file}:{compilation.line}",
        cost_s=compilation.total_s,
        evidence=_evidence(model, told),
        next_step=reading.advice or "nothing if it was the last one",
        about=About("recompile", recompile.key),
    )


def _same(one: Reading, other: Reading) -> bool:
    return (one.kind, one.subject) == (other.kind, other.subject)


def _costly(model: Model, told: list[Told]) -> bool:
    cost = _cost([one for one in told if not one[0].compilation.before_attach])
    if cost is None or len(told) < 2 or cost < COSTLY_S:
        return False
    return cost >= COSTLY_SHARE * model.steps.durations.total_ns / 1e9


def _told(ones: list[Told]) -> str:
    """`[0/1] in step 4, 12.3 ms: len(seen) is 2, was 1`; those that say the same in one line, with their cost together."""
    compilations = [recompile.compilation for recompile, _ in ones]
    ids = ", ".join(f"[{compilation.compile_id}]" for compilation in compilations)
    cost = f", {seconds(total)}" if (total := _cost(ones)) is not None else ""
    steps = list(dict.fromkeys(str(compilation.step) for compilation in compilations if compilation.step is not None))
    step = f" in step{'s' if len(steps) > 1 else ''} {', '.join(steps)}" if steps else ""
    thread = compilations[0].thread
    on = f" on thread {thread}" if thread not in ("", "main", "MainThread") else ""
    return f"{ids}{step}{cost}{on}: {ones[0][1].sentence}"


def _evidence(model: Model, told: list[Told]) -> tuple[str, ...]:
    out = [_told(list(ones)) for _, ones in groupby(told[-4:], key=lambda one: (one[1].sentence, one[0].compilation.thread))]
    if len(told) > 4:
        out.insert(0, f"{many(len(told) - 4, 'recompile')} before these")
    why = told[-1][1].why
    if why:
        out.append(why)
    return tuple(out)
