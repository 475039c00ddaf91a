"""What the job does now, and its steps as a chart."""

from __future__ import annotations

from tuimon.app.panels.frame import PanelLines, plural, sentence, title_line, title_room, watched
from tuimon.app.panels.looking import look_line
from tuimon.app.panels.pace import (
    comparison_line,
    latest_compile,
    now_line,
    overdue,
    rate_then_or_now,
    stopped_words,
)
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import aligned, chart, marks, nice_top, per_column
from tuimon.draw.text import Line, cut, cut_line, fill, wrap
from tuimon.model.statistics import WINDOW, quantile

AXIS = 9
"""Cells for the scale at the left of the chart."""

FULL_HEIGHT = 5
"""From so many lines on the panel has a line of its own for the step statistics."""


def statistics_line(scene: Scene, width: int) -> Line:
    """Rate, median and spread of the steps, and where the steps come from."""
    steps = scene.model.steps
    if steps.source is None:
        return []
    summary = steps.durations.summary
    # one role for all that changes with every step: each further one costs some forty bytes a picture
    return fill(
        [
            (0, rate_then_or_now(scene)),
            (1, [(f"median {fmt.duration(summary.median)}", "text")]),
            (2, [(fmt.spread(summary.p10, summary.p90), "text")]),
            (4, [(f"from the {steps.source}", "text")]),
            (6, [(f"all steps, last {WINDOW}", "note")]),
            (5, [(f"compiled {_compiled(scene)}", "text")]),
        ],
        width,
    )


def _compiled(scene: Scene) -> str:
    compilations = [one for one in scene.model.compilations if not one.refused]
    known = [one.total_s for one in compilations if one.total_s is not None]
    times = "once" if len(compilations) == 1 else f"{len(compilations)} times"
    return f"{times}, {fmt.duration(sum(known))}" if known else times


def step_chart(scene: Scene, width: int, height: int) -> PanelLines:
    """The latest steps as bars, with a row of marks below the ones that had a compilation in them."""
    recent = list(scene.model.steps.recent)
    glyphs = scene.glyphs
    if len(recent) > 1 and recent[-1][1] < 1_000_000_000 and (recent[-1][0] + 1) % per_column(glyphs):
        # a column that is half full would be sent twice; with short steps nobody misses the last one for so long
        recent.pop()
    if height <= 0 or not recent:
        return []
    wide = max(1, width - AXIS - 2)
    shown = recent[-per_column(glyphs) * wide :]
    last = shown[-1][0]
    plain = sorted(took for _, took, compiled in shown if not compiled) or sorted(took for _, took, _ in shown)
    top = nice_top((quantile(plain, 0.98) or 0.0) * 1.1 / 1e9)
    took_s: list[float | None] = [took / 1e9 for _, took, _ in shown]
    compiled = [compiled for _, _, compiled in shown]
    beyond = [took / 1e9 > top * 1.05 and not compiled for _, took, compiled in shown]
    with_marks = height >= 2
    rows = chart(aligned(took_s, last, glyphs), wide, height - 1 if with_marks else height, top, glyphs)
    lines: PanelLines = []
    for at, row in enumerate(rows):
        label = fmt.duration(top) if at == 0 else ("0" if at == len(rows) - 1 else "")
        lines.append([(f"{label:>{AXIS}} ", "axis"), (row, "spark")])
    if with_marks:
        gap = [False] * (len(aligned(took_s, last, glyphs)) - len(took_s))
        compile_marks = marks([*compiled, *gap], wide, glyphs.up, glyphs)
        beyond_marks = marks([*beyond, *gap], wide, "+", glyphs)
        both = "".join(mine if mine != " " else theirs for mine, theirs in zip(compile_marks, beyond_marks, strict=True))
        label = "compiled" if any(compiled) else ("beyond" if any(beyond) else "")
        lines.append([(f"{label:>{AXIS}} ", "axis"), (both, "compile")])
    return lines


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    if height <= 0 or width <= 0:
        return []
    if scene.model.target.attached_ns is None:
        return _before_attach(scene, width, height, focused)
    statistics = statistics_line(scene, width - 1)
    if height < FULL_HEIGHT:
        lines = [title_line(1, "now", now_line(scene, title_room("now", width)), width, focused, scene.glyphs)]
        lines += second_line(scene, width)
    else:
        lines = [title_line(1, "now", "", width, focused, scene.glyphs), [(" ", "text"), *now_line(scene, width - 1)]]
        lines += second_line(scene, width)
        if statistics:
            lines.append([(" ", "text"), *statistics])
    room = height - len(lines)
    if scene.model.steps.recent:
        lines += step_chart(scene, width, room)
    elif room > 0:
        lines += sentence(_no_steps(scene), width, room)
    return lines[:height]


def second_line(scene: Scene, width: int) -> PanelLines:
    """What matters beside what happens now: how a compilation compares with earlier ones, else what to look at first."""
    running = latest_compile(scene.model) if scene.model.target.ended is None else None
    line = look_line(scene) if running is None else comparison_line(scene, running)
    return [[(" ", "text"), *cut_line(line, max(1, width - 2), scene.glyphs.ellipsis)]] if line else []


def _before_attach(scene: Scene, width: int, height: int, focused: bool) -> PanelLines:
    """How the attach goes, in whole sentences: there is nothing else to show, and they are what is waited for."""
    line = now_line(scene, 4 * width * height)
    role = next((role for text, role in line if text.strip()), "note")
    words = "".join(text for text, _ in line)
    room = height - 1
    pieces = wrap(words, max(1, width - 2))
    if len(pieces) > room > 0 and scene.model.target.ended == "refused":
        pieces = ["cannot attach; why stands below"]  # the boundaries have room for a sentence
    if len(pieces) > room > 0:
        pieces = [*pieces[: room - 1], cut(" ".join(pieces[room - 1 :]), max(1, width - 2), scene.glyphs.ellipsis)]
    title = title_line(1, "now", "", width, focused, scene.glyphs)
    return [title, *([(" ", "text"), (piece, role)] for piece in pieces[:room])]


def _no_steps(scene: Scene) -> str:
    """Why there is no chart."""
    model = scene.model
    if model.steps.source is not None and model.target.ended is None:
        return "a step's time is known when the next one ends"
    if _runs_without_steps(scene):
        calls = plural(sum(region.calls for region in model.regions.values()), "call")
        so_far = " so far" if model.target.ended is None else ""
        return f"no step told apart so far; {calls} of regions{so_far}"
    if model.target.ended is not None:
        return "no step was timed" + watched(scene)
    return "steps appear here as the job makes them"


def _runs_without_steps(scene: Scene) -> bool:
    return scene.model.steps.source is None and bool(scene.model.regions)


def _ticking(scene: Scene) -> bool:
    # without steps nothing else draws the panel anew, and what to look at first may come with time alone
    without_steps = scene.model.steps.source is None and bool(scene.model.regions or scene.model.frames)
    return bool(scene.model.running) or overdue(scene) is not None or without_steps


PANEL = Panel(
    number=1,
    id="now",
    title="now",
    sections=("now", "steps", "target", "compiles"),
    draw=_draw,
    keys=lambda scene, view: [],
    ticking=_ticking,
    stamp=lambda scene: stopped_words(scene.silence, scene.model.target.pid),
    help=(
        "What the job does at this moment: the step that runs, or the frame that compiles, in which phase and for how long. "
        "The chart has one bar a step, from zero; the scale leaves out steps with a compilation in them, which are marked "
        "below (a + marks any other step that is taller than the chart). The rate is over the last five seconds of steps. "
        "Above the chart: what to look at first (w shows all), or how a compilation compares with this process's earlier ones."
    ),
)
