"""`tuimon replay PATH` and `tuimon report PATH`: what files hold of jobs that are over, on the screen or as a report.

A folder is all that is in it: each rank of a job, beside the others.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from pathlib import Path

from tuimon import events as ev
from tuimon.commands.options import FAILED, USAGE, Options, deliver, say
from tuimon.commands.progress import Reading
from tuimon.model import Model
from tuimon.model.ranks.jobs import Jobs
from tuimon.playback import ELSEWHERE, FileGroup, Playback, WholeFile, of_path
from tuimon.sources.files import Opened, Progress, open_any
from tuimon.sources.trace_file import Text, Unreadable

SOON_S = 0.3
"""A file that is none is mostly found out within so long: no screen is opened for it then."""
STEP_NAME = "ProfilerStep#"
MOST_LOOKED_AT = 256 * 2**20
"""Bytes, unpacked, of a trace that are looked at for a step before the screen opens."""
COMPARED_EVERY_NS = 1_000_000_000


def run(
    path: Path,
    options: Options,
    *,
    screen: bool,
    speed: float | None = 1.0,
    at: str | None = None,
    paused: bool = False,
) -> int:
    """Show the file or folder, or without a screen its report. Gives an exit status: 1, and says why, where it cannot be read.

    Recordings are played at `speed` (None: as fast as it goes), from the place `at` on (see `playback.position.place`).
    """
    if not screen:
        return _report(path, options)
    try:
        feed = of_path(path, judge=options.judge, speed=speed, paused=paused)
    except Unreadable as error:
        say(f"{path} {error}")
        return FAILED
    members = feed.members if isinstance(feed, FileGroup) else [feed]
    if at is not None:
        why_not = _begin_at(members, at)
        if why_not is not None:
            say(why_not)
            return USAGE
    whole = [one for one in members if isinstance(one, WholeFile)]
    for one in whole:
        one.start()
    if whole:
        feed.wait(SOON_S)
    if feed.refused is None:
        from tuimon.commands.screen import on_screen

        status = on_screen(feed, options, front=_front(members[0]))
        if feed.refused is None and options.output is None:
            return status
    if feed.refused is not None:
        say(feed.refused)
        return FAILED
    return _report(path, options)


def _begin_at(members: list[Playback | WholeFile], at: str) -> str | None:
    """Have recordings begin there. Gives a sentence where that is no place."""
    offset = time.localtime().tm_gmtoff
    for one in members:
        if not isinstance(one, Playback):
            return f"--at is for recordings; {one.opened.path.name} is shown as a whole"
        why_not = one.go(at, offset)
        if why_not is not None:
            return f"--at {at}: {why_not}"
    return None


def _front(first: Playback | WholeFile) -> str | None:
    """The panel to begin with: of a profiler's file that tells no steps, its roofline."""
    if first.opened.kind not in ("kineto", "ncu"):
        return None
    first.drain()  # a small one is read by now
    steps = first.model.steps.n or (first.opened.kind == "kineto" and _tells_steps(first.opened.path))
    return None if steps else "roofline"


def _tells_steps(path: Path) -> bool:
    """Whether a trace names steps: so that how fast this machine reads it does not choose the panel."""
    before = ""
    try:
        for chunk in Text(path, MOST_LOOKED_AT).chunks():
            if STEP_NAME in before + chunk:
                return True
            before = chunk[-len(STEP_NAME) :]
    except Unreadable:
        pass
    return False


# ------------------------------------------------------------------------------------------ without a screen


def _report(path: Path, options: Options) -> int:
    from tuimon.commands.watch import known_figures
    from tuimon.report import build, render
    from tuimon.report.ranks import Watched

    try:
        found, left = open_any(path)
        with Reading(path.name, [one.path for one in found]) as reading:
            models, refused, jobs = _folded(found, options, reading)
    except Unreadable as error:
        say(f"{path} {error}")
        return FAILED
    for one, why in refused:
        say(f"{one.path} {why}")
    if not models:
        return FAILED
    jobs.settle()
    first = models[0][1]
    left += [f"left out: {one.path.name}, which {why}" for one, why in refused]
    if left:
        first.apply([ev.NotAvailable(first.now_ns, "the whole folder", "; ".join(left))])
    ranks = [Watched(one.label, one.rank, None, None, model, at, jobs.of(at)) for at, (one, model) in enumerate(models)]
    told = {"name": path.name, "kind": models[0][0].kind, "ranks": len(models)}
    figures, here = known_figures(options.ceilings), models[0][0].local
    made = build(first, ranks=ranks if len(ranks) > 1 else (), known=figures, here=here, file=told)
    return deliver(render(made, options.format), options.output)


def _folded(
    found: list[Opened], options: Options, reading: Reading
) -> tuple[list[tuple[Opened, Model]], list[tuple[Opened, Unreadable]], Jobs]:
    """The models of all, those that could not be read with the reason, and what they are beside each other.

    Raises Unreadable where there is one file, and it cannot be read. Ranks are folded side by side: compared as they were live.
    """
    models = {at: Model() for at in range(len(found))}
    refused: dict[int, Unreadable] = {}
    parts = {at: _parts(one, reading.part(at)) for at, one in enumerate(found)}
    turns = [(0, at) for at in models]
    jobs, compared_ns = Jobs(), 0
    for model in models.values():
        options.judge(model)
    while turns:
        now_ns, at = heapq.heappop(turns)
        try:
            part = next(parts[at], None)
        except Unreadable as error:
            if len(found) == 1:
                raise
            refused[at] = error
            continue
        if part is not None:
            models[at].apply(part[1])
            heapq.heappush(turns, (part[0], at))
        if len(found) > 1 and (part is None or now_ns - compared_ns >= COMPARED_EVERY_NS):
            compared_ns = now_ns
            for key, model in models.items():
                jobs.see(key, model, host=ELSEWHERE)
    good = [(one, models[at]) for at, one in enumerate(found) if at not in refused]
    return good, [(found[at], why) for at, why in refused.items()], jobs


def _parts(opened: Opened, progress: Progress) -> Iterator[tuple[int, list[ev.Event]]]:
    """What a file holds, with the times by which it is to be folded beside others."""
    if opened.again is not None:
        began_ns = int((opened.began_s or 0) * 1e9)
        return ((began_ns + piece.at_ns, piece.events) for piece in opened.again(0, progress))
    return ((0, batch) for batch in opened.events(progress))
