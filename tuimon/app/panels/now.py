"""What the job does now, and its steps as a chart over a timeline."""

from __future__ import annotations

from tuimon.app.panels.frame import NOT_IN_FILE, PanelLines, plural, sentence, title_line, title_room, untold, watched
from tuimon.app.panels.looking import latest_findings, look_line
from tuimon.app.panels.pace import (
    comparison_line,
    latest_compile,
    now_line,
    overdue,
    rate_then_or_now,
    stopped_words,
)
from tuimon.app.panels.standing import answered, told
from tuimon.app.panels.timeline import (
    Timeline,
    bars_row,
    known_step,
    legend,
    letter,
    marks_row,
    name_of_a_cell,
    selected,
    slow_step,
    timeline,
)
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import chart, nice_top, per_column
from tuimon.draw.text import Line, clean, cut, cut_line, fill, line_cells, wrap
from tuimon.model.slow import naming
from tuimon.model.statistics import WINDOW, quantile
from tuimon.model.steps.parts import SlowStep

AXIS = 9
"""Cells for the scale at the left of the chart."""

FULL_HEIGHT = 6
"""From so many lines on the panel has lines of their own for what happens now and for the step statistics."""

SCALE_BY, SCALE_ROOM = 0.9, 1.1
"""The chart ends above this share of the usual steps: a slow one, judged a moment later, must not move its scale."""

MANY_CALLS = 8
"""After so many calls without a step it is said how steps can be marked."""

FROM = {"optimizer": "from the optimizer", "marked": "as marked", "inferred": "inferred from the order of calls"}
"""Where steps come from."""


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
            (4, _from(scene)),
            (6, [(f"all steps, last {WINDOW}", "note")]),
            (5, [(_compiled(scene), "text")]),
        ],
        width,
    )


def _from(scene: Scene) -> Line:
    """Where steps come from; first of all that it is not the function that was named for it."""
    source = scene.model.steps.source or ""
    told = FROM.get(source, source)
    unmarked = clean(scene.model.coverage.unmarked)
    return [(f"{told}: {unmarked}", "warn")] if unmarked else [(told, "text")]


def _compiled(scene: Scene) -> str:
    if untold(scene, "compiles"):
        return f"compilations {NOT_IN_FILE}"
    compilations = [one for one in scene.model.compilations if not one.refused]
    known = [one.total_s for one in compilations if one.total_s is not None]
    times = "once" if len(compilations) == 1 else f"{len(compilations)} times"
    return f"compiled {times}, {fmt.duration(sum(known))}" if known else f"compiled {times}"


def step_chart(scene: Scene, view: PanelView, width: int, height: int) -> tuple[PanelLines, Timeline]:
    """The steps in `height` lines: bars, and the timeline below them; one line is the timeline alone, with bars in it."""
    glyphs = scene.glyphs
    wide = max(1, width - AXIS - 2)
    of = timeline(scene, view, wide)
    top = nice_top((quantile(sorted(of.usual_ns), SCALE_BY) or 0.0) * SCALE_ROOM / 1e9)
    name = name_of_a_cell(of, selected(scene.model, view))
    role = "cursor" if of.cursor is not None else "axis"
    if height <= 1:
        return [[(f"{name:>{AXIS}}", role), (" ", "axis"), *bars_row(of, top, glyphs)]][:height], of
    share = per_column(glyphs)
    values = [took for took in of.took_s for _ in range(share)]
    lines: PanelLines = []
    for at, row in enumerate(chart(values, wide, height - 1, top, glyphs)):
        label = fmt.duration(top) if at == 0 else ("0" if at == height - 2 else "")
        lines.append([(f"{label:>{AXIS}} ", "axis"), (row, "spark")])
    lines.append([(f"{name:>{AXIS}}", role), (" ", "axis"), *marks_row(of, glyphs)])
    return lines, of


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    if height <= 0 or width <= 0:
        return []
    if scene.model.target.attached_ns is None:
        return _before_attach(scene, width, height, focused)
    full = height >= FULL_HEIGHT
    lines: PanelLines = []
    if full:
        lines.append([(" ", "text"), *now_line(scene, width - 1)])
    if height > 2 or not scene.model.steps.accounts:
        lines += second_line(scene, view, width, height)
    statistics = statistics_line(scene, width - 1) if full or height == FULL_HEIGHT - 1 else []
    if statistics:
        lines.append([(" ", "text"), *statistics])
    room = height - 1 - len(lines)
    of = None
    if scene.model.steps.accounts:
        rows, of = step_chart(scene, view, width, room)
        lines += rows
    elif room > 0:
        lines += sentence(_no_steps(scene), width, room)
    return [_title(scene, view, of, width, focused, full), *lines][:height]


def _title(scene: Scene, view: PanelView, of: Timeline | None, width: int, focused: bool, full: bool) -> Line:
    """The name, what happens now where that has no line of its own, and at the right what the marks in view mean."""
    glyphs = scene.glyphs
    room = title_room("now", width)
    note: Line | str = "" if full else now_line(scene, room)
    right: Line = []
    if of is not None:
        taken = 0 if isinstance(note, str) else line_cells(note) + 3
        # a letter that is not explained says nothing; a compilation that runs says more than they do
        least = 0 if scene.model.running else room * 2 // 5
        right = _meanings(scene, view, of, max(least, room - taken - 6))
    if not right:
        return title_line(1, "now", note, width, focused, glyphs)
    tail: Line = [(" ", "rule"), *right, (" ", "rule"), (glyphs.horizontal, "rule")]
    if not full:
        note = now_line(scene, max(1, room - line_cells(tail) - 3))
    return [*title_line(1, "now", note, width - line_cells(tail), focused, glyphs), *tail]


def _meanings(scene: Scene, view: PanelView, of: Timeline, room: int) -> Line:
    parts: list[Line] = []
    if of.cursor is not None and room >= 12:
        parts.append([("esc follows", "note")])
    elif scene.model.steps.source == "inferred" and room >= 14:
        parts.append([("inferred steps", "note")])
    used = sum(line_cells(part) + 2 for part in parts)
    meanings = legend(of, scene.glyphs, room - used)
    if meanings:
        parts.append(meanings)
    out: Line = []
    for part in parts:
        out += [*([("  ", "text")] if out else []), *part]
    return out


TALL = 16
"""From so many lines on the panel has the screen, whose first line tells of slow steps; else that tells what to look at."""


def second_line(scene: Scene, view: PanelView, width: int, height: int = TALL) -> PanelLines:
    """What matters beside what happens now, and beside the first line of the screen. It always has something to say where there
    are steps, so that nothing jumps."""
    room = max(1, width - 2)
    running = latest_compile(scene.model) if scene.model.target.ended is None else None
    chosen = selected(scene.model, view)
    if chosen is not None:
        line = _selected_line(scene, chosen.index, room)
    elif running is not None:
        line = comparison_line(scene, running)
    else:
        line = _slow_and_found(scene, room) if height < TALL else look_line(scene, room) or _slow_line(scene)
    return [[(" ", "text"), *cut_line(line, room, scene.glyphs.ellipsis)]] if line else []


def _selected_line(scene: Scene, index: int, room: int) -> Line:
    """The selected step: its cause where it was slow, and how to see all of it."""
    slow = slow_step(scene.model, index)
    hint: Line = [("  enter", "key"), (" its account", "note")]
    if slow is not None:
        return [*cut_line(_in_short(slow), max(1, room - line_cells(hint)), scene.glyphs.ellipsis), *hint]
    account = known_step(scene.model, index)
    took = f" took {fmt.duration(account.took_ns / 1e9)}" if account is not None else ""
    compiled = ", with a compilation in it" if account is not None and account.compiled else ""
    return [(f"step {index}{took}{compiled}: not among the slow ones", "text"), *hint]


def _in_short(slow: SlowStep) -> Line:
    """What made a step slow, as soon as can be said: the page and the log have the whole sentence."""
    mark, role = letter(slow)
    times = f", {naming.times(slow.ratio)} the usual" if slow.ratio is not None else ""
    causes = " and ".join(
        one.cause if one.cause == naming.UNEXPLAINED else f"{one.cause} {one.share:.0%}" for one in slow.causes
    )
    detail = f": {clean(slow.causes[0].detail)}" if slow.causes and slow.causes[0].detail else ""
    took = fmt.duration(slow.account.took_ns / 1e9)
    return [(f"{mark} ", role), (f"step {slow.account.index}: {took}{times}: {causes}{detail}", "text")]


def _slow_and_found(scene: Scene, room: int) -> Line:
    """The latest slow step, and how many things there are to look at."""
    slow = _slow_line(scene)
    if not slow:
        return look_line(scene, room)
    found = len(latest_findings(scene))
    hint: Line = [("  w", "key"), (f" {plural(found, 'finding')}", "note")] if found else []
    return [*cut_line(slow, max(1, room - line_cells(hint)), scene.glyphs.ellipsis), *hint]


def _slow_line(scene: Scene) -> Line:
    """The latest slow step, or that there was none."""
    steps = scene.model.steps
    if steps.source is None or not steps.accounts:
        return []
    if steps.slow:
        return _in_short(steps.slow[-1])
    return [(f"none of {plural(steps.n, 'step')} was slow", "note")]


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
    if untold(scene, "steps"):
        return f"steps: {untold(scene, 'steps')}"
    unmarked = clean(model.coverage.unmarked)
    if unmarked and model.steps.source is None:
        return f"no step so far: {unmarked}"
    if model.steps.source is not None and model.target.ended is None:
        return "a step's time is known when the next one ends"
    if _runs_without_steps(scene):
        count = sum(region.calls for region in model.regions.values())
        so_far = " so far" if model.target.ended is None else ""
        why = clean(model.steps.why_not)
        if not why and count >= MANY_CALLS:
            why = "if that stays so, mark them: --step MODULE:FUNCTION, or tuimon.step() in the loop"
        return f"no step told apart so far; {plural(count, 'call')} of regions{so_far}{f'; {why}' if why else ''}"
    if model.target.ended is not None:
        return f"no step was timed{watched(scene)}" + (f": {clean(model.steps.why_not)}" if model.steps.why_not else "")
    return "steps appear here as the job makes them"


def _answer(scene: Scene) -> Line:
    """Whether steps are slow, and the latest one that was."""
    steps = scene.model.steps
    if steps.source is None or not steps.accounts:
        return told(_no_steps(scene))
    late = overdue(scene)
    now: Line = []
    if late is not None:
        times = f", {fmt.count(late.medians)} times the usual" if late.medians is not None else ""
        why = " (compiling)" if late.compiling else ""
        now = [(f"no step for {fmt.age(late.for_s)}{times}{why}", "warn"), ("; ", "text")]
    if not steps.slow:
        took = fmt.duration(steps.durations.summary.median)
        return [*now, (f"none of {plural(steps.n, 'step')} was slow", "good"), (f"; the median takes {took}", "text")]
    return [*now, (f"{fmt.count(steps.slow_n)} slow; last: ", "strong"), *_in_short(steps.slow[-1])]


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
        "Below it one cell a step, the newest at the right: a letter is a slow step and names its cause, up to a second after "
        "its end; an arrow is a step with a compilation that was not slow. The bars above go from zero; their scale leaves out "
        "slow steps and those with a compilation. Where steps are short a cell stands for several, 5/cell for instance: it "
        "shows the worst of them. n and N select slow steps, j and k any step; the line then stands still, one cell a step, "
        "until esc; enter shows the step's account beside the usual one, or, without a selected step, what is known of all. "
        "Above the chart: what to look at first (w shows all), the selected step, or how a compilation compares with others."
    ),
    answer=answered(_answer),
)
