"""The lines at the top: what the screen answers, what is watched, how it stands with it and what watching costs it."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.app.feed import Where
from tuimon.app.panels.frame import PanelLines, plural
from tuimon.app.panels.pace import stopped_words
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


def draw(scene: Scene, status: Status, answer: Line, width: int, height: int, shown: Scene | None = None) -> PanelLines:
    """The lines at the top: what the screen answers; then who is watched and how it stands; a third for the ranks, where there
    are several. One line is the answer alone.

    `shown` is the frozen scene, where there is one: numbers are of it. That the job is over is said whether or not the screen
    stands still.
    """
    if height <= 0 or width <= 0:
        return []
    lines: PanelLines = [[(" ", "text"), *cut_line(answer, width - 1, scene.glyphs.ellipsis)]]
    if height >= 2:
        right = _right(scene, status, width, shown or scene)
        lines.append([(" ", "text"), *two_ends(_who(scene, width - line_cells(right) - 3), right, width - 1)])
    if height >= 3 and scene.ranks:
        lines.append([(" ", "text"), *ranks_line(scene, width - 1)])
    return lines


COST_FROM = 100
"""From so many cells on there is room for what the hook costs the job."""


def _right(scene: Scene, status: Status, width: int, shown: Scene) -> Line:
    """How it stands with the job, then with the monitor; in fewer words where the program's name would have no room."""
    cost, dropped, rest = _cost(scene, shown, width), _dropped(scene, shown), _monitor(scene, status)
    most = width - LEAST_COMMAND - len("  tuimon    pid 4194304  ")
    dot: Line = [(f" {scene.glyphs.separator} ", "dim")]
    for brief, parts in ((False, (cost, dropped, rest)), (False, (dropped, rest)), (True, (dropped, rest)), (True, (rest,))):
        behind = [run for part in parts if part for run in (*dot, *part)]
        line = [*(_in_a_word(scene) if brief else state(scene, width - line_cells(behind))), *behind]
        if line_cells(line) <= most:
            break
    return line


def _in_a_word(scene: Scene) -> Line:
    """How it stands with the job, where the line above says more of it."""
    target = scene.model.target
    if target.ended is None and target.attached_ns is not None and scene.replay is None:
        if scene.silence is not None and scene.silence[1]:
            return [(f"{scene.glyphs.mark_off} {clean(scene.silence[1])}", "warn")]
        if target.torch is not None and (scene.silence is None or scene.silence[0] < SILENT_S):
            return [(f"{scene.glyphs.mark_on} attached", "good")]
    return state(scene, 0)


def _cost(scene: Scene, shown: Scene, width: int) -> Line:
    if width < COST_FROM or scene.model.target.attached_ns is None or scene.model.target.how == "file":
        return []
    return [("hook ", "label"), (hook_cost(shown), "number"), (" of the job", "label")]


def _dropped(scene: Scene, shown: Scene) -> Line:
    if scene.model.target.attached_ns is None or scene.model.target.how == "file":
        return []
    dropped = shown.model.coverage.dropped
    return [("dropped ", "label"), (fmt.count(dropped), "warn" if dropped else "number")]


def _monitor(scene: Scene, status: Status) -> Line:
    """What the monitor itself does."""
    parts: list[Line] = []
    if status.frozen is not None:
        parts.append([(f" FROZEN +{fmt.count(status.frozen)} events ", "frozen")])
    if scene.replay is not None:
        parts.append(reading(scene.replay))
    if status.recording:
        parts.append([(status.recording, "warn" if "stopped" in status.recording else "good")])
    if status.slow_link:
        line = f" {status.line}" if status.line else ""
        parts.append([(f"slow line{line}: {status.hertz:g} Hz", "warn")])
    else:
        parts.append([(f"{status.hertz:g} Hz", "dim")])
    out: Line = []
    for part in parts:
        if part:
            out += [*([(f" {scene.glyphs.separator} ", "dim")] if out else []), *part]
    return out


def _who(scene: Scene, width: int) -> Line:
    target, coverage = scene.model.target, scene.model.coverage
    facts: list[tuple[int, Line]] = []
    if target.pid is not None:
        facts.append((0, [("pid ", "label"), (str(target.pid), "number")]))
    if scene.host is not None and scene.replay is None and target.how != "file":
        facts.append((1, [("on ", "label"), (cut(clean(scene.host), 24, scene.glyphs.ellipsis), "number")]))
    if target.rank is not None:
        of = f"/{target.world_size}" if target.world_size is not None else ""
        facts.append((1, [("rank ", "label"), (f"{target.rank}{of}", "number")]))
    if target.attached_ns is None and target.attaching is not None and scene.replay is None:
        facts.append((0, [("q cancels", "note")]))
    off = [name for name, on in coverage.instruments.items() if not on.startswith("on")]
    if off:
        facts.append((2, [("off: ", "warn"), (clean(", ".join(off)), "warn")]))
    elif coverage.not_available:
        facts.append((6, [(f"{plural(len(coverage.not_available), 'thing')} not available here", "note")]))
    if target.torch is not None:
        facts.append((3, [("torch ", "label"), (clean(target.torch), "number")]))
    if target.devices:
        more = f" +{len(target.devices) - 1}" if len(target.devices) > 1 else ""
        facts.append((4, [(cut(clean(target.devices[0]), 24, scene.glyphs.ellipsis) + more, "gpu")]))
    if target.python is not None:
        facts.append((5, [("python ", "label"), (clean(target.python), "dim")]))
    name = command(target.command or scene.title or "no target yet", max(1, width - 8), scene.glyphs.ellipsis)
    wanted = min(cells(name), MOST_COMMAND)
    beside = fill(facts, max(0, width - 8 - wanted - 2))
    if facts and facts[0][0] > 0 and line_cells(beside) > width - 8 - wanted - 2:
        beside = []  # one that has to be said stands before all others
    room = width - 8 - line_cells(beside) - 2
    name = command(target.command or scene.title or "no target yet", max(1, room), scene.glyphs.ellipsis)
    return [("tuimon", "brand"), ("  ", "text"), (name, "strong"), ("  ", "text"), *beside]


MOST_COMMAND = 40
"""Cells of the command that come before what else there is to say of the job."""
