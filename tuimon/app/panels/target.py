"""The two lines at the top: what is watched, how it does, and what watching costs it."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.app.feed import Where
from tuimon.app.panels.frame import PanelLines
from tuimon.app.panels.pace import now_line, rate_words, stopped_words
from tuimon.app.panels.ranks import ranks_line
from tuimon.app.ranks import SILENT_S
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import command
from tuimon.draw.text import Line, cells, clean, cut, cut_line, fill, line_cells, two_ends

_ENDS = {"exited": "ENDED", "lost": "LOST", "detached": "DETACHED", "refused": "REFUSED"}


COST_AFTER_S = 5.0
"""The hook's cost is a share of the time watched; of less than this, the attach itself would be most of it."""

LEAST_COMMAND = 16
"""Cells of the command below which the first line says the job's end in fewer words."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the monitor itself is doing."""

    frozen: int | None = None
    """Events that came in since the screen was frozen; None if it is not."""
    hertz: float = 4.0
    slow_link: bool = False
    message: str = ""
    """A word to the person; it goes away by itself."""
    recording: str = ""
    """How it stands with what is recorded; "": nothing is."""
    line: str = ""
    """What the line to the terminal takes ("0.9 kB/s"), where it is slow."""


def state(scene: Scene, width: int) -> Line:
    """How it stands with the job, in a word and a sign; how it ended in full where `width` has room for it."""
    glyphs = scene.glyphs
    target = scene.model.target
    if scene.replay is not None and target.ended != "refused":
        return replayed(scene.replay, glyphs.name == "ascii")
    if target.how == "file" and target.ended == "detached":
        return [(f"{glyphs.mark_on} {clean(target.ended_detail)}", "good")]
    if target.ended is not None:
        word = f"{glyphs.mark_off} {_ENDS.get(target.ended, 'ENDED')}"
        whole = f"{word} {clean(target.ended_detail)}".rstrip()
        known = target.ended != "refused" and (target.status is not None or target.ended != "exited")
        room = width - cells(f" tuimon   pid {target.pid}    ") - LEAST_COMMAND
        return [(whole if known and cells(whole) <= room else f"{word} {end_in_short(scene)}".rstrip(), "ended")]
    if target.attached_ns is None:
        if target.attaching is None:
            return [(f"{glyphs.mark_off} no word yet", "note")]
        if target.attaching_since_s is None:
            return [(f"{glyphs.mark_off} attaching", "note")]
        return [(f"{glyphs.mark_off} waiting to attach, {fmt.age(target.attaching_since_s)}", "warn")]
    stopped = stopped_words(scene.silence, target.pid)
    if stopped is not None:
        return [(f"{glyphs.mark_off} {stopped}", "warn")]
    if scene.silence is not None and scene.silence[0] >= SILENT_S:
        return [(f"{glyphs.mark_off} nothing heard for {fmt.age(scene.silence[0])}", "warn")]
    if target.torch is None:
        return [(f"{glyphs.mark_off} waiting for torch", "warn")]
    # the time of day, not how long ago: it does not change, so it is not sent again every second
    offset = scene.model.wall_offset_s
    since = fmt.clock(target.attached_ns / 1e9 + offset, scene.utc_offset_s) if offset is not None else ""
    return [(f"{glyphs.mark_on} attached {since}".rstrip(), "good")]


def replayed(where: Where, plain: bool) -> Line:
    """Where a replay stands: how it goes, the time in it and its length, the step."""
    pace = "max" if where.speed is None else f"{where.speed:g}x"
    if where.going:
        how: Line = [(f"going to {where.going}", "warn")]
    elif where.over:
        how = [("END" if plain else "\u25a0 end", "ended")]
    elif where.paused:
        how = [("PAUSED" if plain else "\u2016 paused", "frozen")]
    else:
        how = [(f"PLAY {pace}" if plain else f"\u25b6 {pace}", "good")]
    step = f"  step {where.step}" if where.step is not None else ""
    more = "" if where.loaded >= 1 else "+"
    return [("replay ", "label"), *how, (f"  {_time(where.at_s)} of {_time(where.of_s)}{more}{step}", "number")]


def reading(where: Where) -> Line:
    """How far a recording is read; nothing where all of it is."""
    if where.loaded >= 1:
        return []
    of = f" of {fmt.count(where.of_rows)}" if where.of_rows is not None else ""
    return [(f"reading {where.loaded:.0%}", "warn"), (f", {fmt.count(where.rows)}{of} samples", "note")]


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"


def end_in_short(scene: Scene) -> str:
    """How the job's process ended, in a word or two; "" where only the watching did."""
    target = scene.model.target
    if target.ended != "exited":
        return ""
    if target.status is None:
        return "status unknown"
    return f"signal {-target.status}" if target.status < 0 else f"status {target.status}"


def hook_cost(scene: Scene) -> str:
    """The hook's own time as a part of the job's, since the attach."""
    model = scene.model
    if model.coverage.hook_s is None or model.target.attached_ns is None:
        return fmt.UNKNOWN
    until = model.target.ended_ns or model.now_ns
    watched = (until - model.target.attached_ns) / 1e9
    if watched < COST_AFTER_S:
        return fmt.UNKNOWN
    share = model.coverage.hook_s / watched
    return "<0.01%" if 0 < share < 0.0001 else f"{share * 100:.2f}%"


def draw(scene: Scene, status: Status, width: int, height: int, shown: Scene | None = None) -> PanelLines:
    """The target lines: two of them, or the most important one; a third for the ranks, where there are several.

    `shown` is the frozen scene, where there is one. Its numbers stand in the second line; the first one goes on to tell how it
    stands with the job.
    """
    if height <= 0 or width <= 0:
        return []
    right_end = state(scene, width)
    first = two_ends(_who(scene, width - line_cells(right_end) - 2), right_end, width - 1)
    lines = [[(" ", "text"), *first]]
    if height >= 3 and scene.ranks:
        lines.append([(" ", "text"), *ranks_line(scene, width - 1)])
    if height >= 2:
        right: Line = []
        if status.frozen is not None:
            right += [(f" FROZEN +{fmt.count(status.frozen)} events ", "frozen")]
        if scene.replay is not None:
            right += reading(scene.replay)
        if status.recording:
            right += [(status.recording, "warn" if "stopped" in status.recording else "good")]
        if status.slow_link:
            right += [("  slow line: ", "warn")] if right else [("slow line: ", "warn")]
        right += [("  ", "text")] if right and not status.slow_link else []
        right += [(f"{status.hertz:g} Hz", "warn" if status.slow_link else "dim")]
        lines.insert(1, [(" ", "text"), *two_ends(_how(shown or scene, width - line_cells(right) - 3), right, width - 1)])
    return lines


def _who(scene: Scene, width: int) -> Line:
    target = scene.model.target
    facts: list[tuple[int, Line]] = []
    if target.pid is not None:
        facts.append((0, [("pid ", "label"), (str(target.pid), "number")]))
    if scene.host is not None and scene.replay is None and target.how != "file":
        facts.append((1, [("on ", "label"), (cut(clean(scene.host), 24, scene.glyphs.ellipsis), "number")]))
    if target.rank is not None:
        of = f"/{target.world_size}" if target.world_size is not None else ""
        facts.append((1, [("rank ", "label"), (f"{target.rank}{of}", "number")]))
    if target.torch is not None:
        facts.append((2, [("torch ", "label"), (clean(target.torch), "number")]))
    if target.devices:
        more = f" +{len(target.devices) - 1}" if len(target.devices) > 1 else ""
        facts.append((3, [(cut(clean(target.devices[0]), 24, scene.glyphs.ellipsis) + more, "gpu")]))
    if target.how:
        facts.append((5, [(clean(target.how), "dim")]))
    if target.python is not None:
        facts.append((4, [("python ", "label"), (clean(target.python), "dim")]))
    beside = fill(facts, max(0, width - 9 - 16))
    room = width - 9 - line_cells(beside) - 2
    name = command(target.command or scene.title or "no target yet", max(1, room), scene.glyphs.ellipsis)
    return [("tuimon", "brand"), ("   ", "text"), (name, "strong"), ("  ", "text"), *beside]


def _how(scene: Scene, width: int) -> Line:
    model = scene.model
    if model.target.attached_ns is None and model.target.attaching is not None:
        if scene.replay is not None:
            return [("tuimon was attaching then", "note")]
        return [("not attached yet; q cancels: nothing of it runs then", "note")]
    if model.target.ended == "refused":
        return cut_line(now_line(scene, width), width, scene.glyphs.ellipsis)
    dropped = model.coverage.dropped
    facts: list[tuple[int, Line]] = []
    facts.append((0, rate_words(scene)))
    facts.append((1, [("median ", "label"), (fmt.duration(model.steps.durations.summary.median), "number")]))
    facts.append((2, [("hook ", "label"), (hook_cost(scene), "number"), (" of the job", "label")]))
    facts.append((0, [("dropped ", "label"), (fmt.count(dropped), "warn" if dropped else "number")]))
    off = [name for name, on in model.coverage.instruments.items() if not on.startswith("on")]
    if off:
        facts.append((3, [("off: ", "warn"), (clean(", ".join(off)), "warn")]))
    elif model.coverage.not_available:
        facts.append((4, [(f"{len(model.coverage.not_available)} things not available here", "note")]))
    return fill(facts, max(0, width))
