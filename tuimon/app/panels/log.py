"""The event log: what happened, newest at the bottom; it follows until someone moves up."""

from __future__ import annotations

import re

from tuimon.app.filtering import matches
from tuimon.app.panels.frame import PanelLines, filter_note, plural, sentence, title_line
from tuimon.app.panels.standing import standing
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import function_name
from tuimon.draw.table import window
from tuimon.draw.text import Line, clean, cut, without_escapes
from tuimon.model.parts import LogLine

KIND_CELLS = 9
_ROLES = {
    "break": "break", "recompile": "recompile", "limit": "bad", "compile": "compile", "target": "strong", "job": "dim",
    "slow": "warn",
}  # fmt: skip


def lines_of(scene: Scene, view: PanelView) -> list[tuple[int, LogLine]]:
    """(running number, line) of what the filter lets through, oldest first."""
    model = scene.model
    first = model.logged - len(model.log)
    numbered = list(enumerate(model.log, first))
    if view.filter:
        numbered = [(at, line) for at, line in numbered if matches(view.filter, f"{line.kind} {line.text}")]
    return numbered


def time_of(scene: Scene, line: LogLine) -> str:
    """The time of day of a log line, in this machine's zone."""
    offset = scene.model.wall_offset_s
    return fmt.clock(line.t_ns / 1e9 + offset if offset is not None else None, scene.utc_offset_s)


_GLOG = re.compile(r"^([DIWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (?=\S+\] )")
"""What glog writes before a message: level, date, time, thread. The row has a time already; the level is kept."""


_RESUMED = re.compile(r"\b(?:torch_dynamo_resume_in_)+\w+?(?:_at_\d+)+\b")
"""Dynamo's name for the rest of a function after a graph break."""
_FROM_LINE = re.compile(r" from line \d+ on(?= \[)")


def row_text(line: LogLine) -> str:
    """A line as its row shows it: no escape sequences, no second time of day, functions as their author knows them. The page
    of details has all of it."""
    text = clean(_GLOG.sub(r"\1 ", without_escapes(line.text)))
    return text if line.kind == "job" else _FROM_LINE.sub(" resumed", _RESUMED.sub(lambda found: function_name(found[0]), text))


def _keys(scene: Scene, view: PanelView) -> list[str]:
    return [str(at) for at, _ in lines_of(scene, view)]


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    if height <= 0 or width <= 0:
        return []
    rows = lines_of(scene, view)
    glyphs = scene.glyphs
    room = height - 1
    view.page = max(1, room)
    at = _position(view, [str(number) for number, _ in rows])
    view.top = window(len(rows), at, view.top, room) if rows else 0
    notes = []
    if view.filter:
        notes.append(filter_note(len(rows), len(scene.model.log), view.filter))
    if not view.follow and rows and at < len(rows) - 1:
        notes.append(f"{len(rows) - 1 - at} newer below, G goes there")
    lines = [title_line(7, "event log", "; ".join(notes), width, focused, glyphs)]
    if not rows:
        if view.filter and scene.model.log:
            return lines + sentence("nothing matches the filter; esc takes it away", width, room)
        return lines + sentence(_empty(scene), width, room)
    for offset, (number, line) in enumerate(rows[view.top : view.top + room]):
        chosen = focused and not view.follow and view.top + offset == at
        role = _ROLES.get(line.kind, "text")
        text = row_text(line)
        runs: Line = [
            (glyphs.right if chosen else glyphs.bullet if str(number) in view.marks else " ", "selected" if chosen else "text"),
            (time_of(scene, line) + " ", "dim"),
            (f"{cut(clean(line.kind), KIND_CELLS, glyphs.ellipsis):<{KIND_CELLS}} ", role),
            (cut(text, max(1, width - 11 - KIND_CELLS), glyphs.ellipsis), "text" if line.kind != "job" else "dim"),
        ]
        lines.append([(text, "selected") for text, _ in runs] if chosen else runs)
    return lines


def _position(view: PanelView, ordered: list[str]) -> int:
    last = len(ordered) - 1
    if view.follow or view.cursor is None or not ordered:
        return max(0, last)
    if view.cursor in ordered:
        return ordered.index(view.cursor)
    # the line has fallen out at the old end, or the filter hides it
    return 0 if int(view.cursor) < int(ordered[0]) else max(0, last)


def line_of(scene: Scene, key: str) -> LogLine | None:
    """The line of this row; None where it has fallen out."""
    at = int(key) - (scene.model.logged - len(scene.model.log)) if key.isdecimal() else -1
    return scene.model.log[at] if 0 <= at < len(scene.model.log) else None


def _copied(scene: Scene, key: str) -> str:
    line = line_of(scene, key)
    return f"{time_of(scene, line)} {clean(line.kind)} {clean(without_escapes(line.text))}" if line is not None else ""


def _answer(scene: Scene) -> Line:
    """The last thing that happened; how it stands with the job where nothing has."""
    if not scene.model.log:
        return standing(scene) or [(_empty(scene), "text")]
    last = scene.model.log[-1]
    return [
        (f"{plural(scene.model.logged, 'event')}; last at ", "text"),
        (time_of(scene, last), "number"),
        (f" {clean(last.kind)}: ", _ROLES.get(last.kind, "text")),
        (row_text(last), "text"),
    ]


def _empty(scene: Scene) -> str:
    if scene.model.target.ended is not None:
        return "nothing happened"
    return "nothing has happened yet: graph breaks, compilations, slow steps and the job's own log lines appear as they come"


PANEL = Panel(
    number=7,
    id="log",
    title="event log",
    sections=("log", "target"),
    draw=_draw,
    keys=_keys,
    filterable=True,
    help="What happened, with the time of day. It follows the newest line; moving up stops that, G starts it again.",
    answer=_answer,
    copied=_copied,
)
