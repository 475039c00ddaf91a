"""The pages of all frames, of one frame, and of one compilation."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, prose
from tuimon.app.details.paged import Source, linked
from tuimon.app.details.recompile import costs
from tuimon.app.panels.frame import NOT_IN_FILE, untold
from tuimon.app.panels.frames import calls_words, entries_words, state_words
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name, function_name
from tuimon.draw.text import Line, cells, clean, cut, pad
from tuimon.model.about import About
from tuimon.model.parts import Compilation, Frame

ALL = "all frames"
MOST_FRAMES = 200
LEAST_CALLS, MOST_NAME = 22, 44
"""Cells of a frame's calls that its name leaves, and of the name."""


def all_lines(scene: Scene, width: int) -> list[Line]:
    """Every frame, the ones in trouble first."""
    frames = sorted(scene.model.frames.values(), key=_urgency)
    out = prose(f"{len(frames)} known: entries of the limit, calls since the attach", width, "note")
    shown = frames[:MOST_FRAMES]
    states = max((cells(state_words(frame)[0]) + 2 for frame in shown if state_words(frame)[0]), default=0)
    room = width - 12 - states
    named = max(12, min(MOST_NAME, room - LEAST_CALLS))
    for frame in shown:
        state, role = state_words(frame)
        name = frame_name(frame.name, frame.file, frame.line, named, scene.glyphs.ellipsis)
        calls = cut(clean(calls_words(scene.model, frame)), max(8, room - named), scene.glyphs.ellipsis)
        line: Line = [
            (f"  {entries_words(frame):>6}  ", "number"),
            (pad(state, states), role),
            (pad(name, named) + "  ", "frame"),
            (calls, "text"),
        ]
        out += linked([line], About("frame", frame.key))
    if len(frames) > MOST_FRAMES:
        out += prose(f"and {len(frames) - MOST_FRAMES} more", width, "note")
    if not frames:
        out += prose("none so far: a frame comes with the first compilation of its function", width, "note")
    return out


def _urgency(frame: Frame) -> tuple[bool, bool, float]:
    return frame.refused_compile_id is None, not frame.skipped, -len(frame.entries)


def frame_title(frame: Frame) -> str:
    """The page's name."""
    return f"frame {function_name(frame.name)}"


def frame_lines(scene: Scene, frame: Frame, width: int) -> list[Line]:
    """The page of one frame: where, its entries and calls, its recompiles, its boundaries."""
    model = scene.model
    state, role = state_words(frame)
    if frame.user_file:
        called = Source(frame.user_file, frame.user_line, "", (f"calls {function_name(frame.name)}",))
        out = linked(fact("called at", f"{frame.user_file}:{frame.user_line}", width, "place"), called)
    else:
        out = []
    place = f"{frame.file}:{frame.line}"
    out += linked(fact("where", place, width, "place"), source_of(frame.file, frame.line, frame.name, _said(frame)))
    if state:
        out += fact("state", state, width, role)
    if frame.skipped_why:
        out += fact("given up", frame.skipped_why, width, "bad")
    if frame.refused_compile_id is not None:
        out += fact("refused", f"[{frame.refused_compile_id}] ({frame.refused_limit or 'recompile_limit'})", width, "bad")
    out += fact("entries", f"{entries_words(frame)}: {', '.join(frame.entries) or 'none'}", width)
    out += fact("calls", calls_words(model, frame), width)
    recompiles = [one for one in model.recompiles if one.compilation.frame == frame.key]
    out += heading(f"its recompiles ({len(recompiles)})") if recompiles else []
    for recompile in reversed(recompiles):
        made = recompile.compilation
        cost = "refused" if made.refused else fmt.duration(made.total_s)
        text = f"[{made.compile_id}]  {recompile.guard or 'guard not known'}"
        line: Line = [
            (f"  {cost:>8}  ", "bad" if made.refused else "number"),
            (cut(clean(text), width - 13, scene.glyphs.ellipsis), "recompile"),
        ]
        out += linked([line], About("recompile", recompile.key))
    breaks = [one for one in model.boundaries.values() if frame.key in one.frames or one.frame == frame.key]
    out += heading(f"its boundaries ({len(breaks)})") if breaks else []
    for one in breaks:
        text = f"{one.user_file or one.file}:{one.user_line or one.line}  {one.kind or one.reason}"
        out += linked(prose(text, width, "break"), About("boundary", one.key))
    regions = [one for one in model.regions.values() if one.frame == frame.key]
    out += heading(f"its regions ({len(regions)})") if regions else []
    for region in regions:
        counted = f"{fmt.count(region.calls)} call{'s' * (region.calls != 1)}"
        calls = f"calls {NOT_IN_FILE}" if untold(scene, "calls") else counted
        text = f"[{region.compile_id}] {region.direction}, {calls}"
        out += linked(prose(text, width, "region"), About("region", region.key))
    return out


def _said(frame: Frame) -> tuple[str, ...]:
    if frame.skipped:
        return (f"it runs in eager whole: {frame.skipped_why or 'Dynamo gave it up'}",)
    if frame.refused_compile_id is not None:
        return (f"it is at its limit of {frame.limit} entries: calls that fit none of them run in eager",)
    return ()


def source_of(file: str, line: int | None, function: str, said: tuple[str, ...] = ()) -> Source | None:
    """A frame's first line; None where it has no file."""
    return Source(file, line, function_name(function), said) if file and line else None


def compilation_title(compilation: Compilation) -> str:
    """The page's name."""
    return f"compilation [{compilation.compile_id}] {compilation.direction} of {function_name(compilation.function)}"


def compilation_lines(scene: Scene, made: Compilation, width: int) -> list[Line]:
    """The page of one compilation: of what, why, when, and what it took."""
    to = source_of(made.file, made.line, made.function, (made.failed,) if made.failed else ())
    out = linked(fact("frame", f"{function_name(made.function)} {made.file}:{made.line}", width, "frame"), to)
    out += fact("why", made.why, width)
    when = "before the attach" if made.before_attach else f"in step {made.step}" if made.step is not None else "step not known"
    out += fact("when", f"{when}{', late' if made.late else ''}", width, "warn" if made.late else "number")
    out += costs(made, width)
    frame = scene.model.frames.get(made.frame) if made.frame else None
    if frame is not None:
        out += heading("its frame")
        out += linked(fact("calls", calls_words(scene.model, frame), width), About("frame", frame.key))
    return out
