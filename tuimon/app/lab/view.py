"""What the lab shows: the question, the roof, the trace, the walk, and a hypothesis beside what was measured. Pure text."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.app.panels.frame import PanelLines, fitted
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.roofline import LEAST_HEIGHT
from tuimon.draw.roofline_lab import lab_lines
from tuimon.draw.table import heads
from tuimon.draw.text import Line, clean, cut, exactly, line_cells, middle, pad, two_ends, wrap
from tuimon.lab import state
from tuimon.lab import walk as walking
from tuimon.lab.numbers import BANDWIDTH, CEILING, INTENSITY, PEAK, digits, write
from tuimon.lab.state import Lab
from tuimon.lab.walk import Walk

TABLE_FROM = 100
"""Columns from which on the stations stand beside the chart."""

TABLE_CELLS = 40

NARROW = 78
"""Below so many columns the numbers take more lines."""

LEAST_SIDES = 5
"""Lines of a hypothesis beside what is measured that stay where there is little room."""

HYPOTHETICAL = "hypothetical: nothing in here is measured"
EXCEPT = "hypothetical, except what is called measured"
POTENTIAL = "potential traffic benefit: hypothesis"
MEASURED = "measured, synchronised time"
MEASURED_NOT = "measured, not synchronised"
NOT_A_SAVING = "potential, no certain saving of time"


@dataclass(frozen=True, slots=True)
class Picture:
    """All that the lab is drawn from."""

    lab: Lab
    walk: Walk | None = None
    measured: tuple[str, ...] = ()
    """What is measured of the region that the hypothesis was taken from, a sentence each."""
    live: bool = False
    """Whether it is a screen of the monitor."""


def draw(picture: Picture, width: int, height: int, glyphs: GlyphSet) -> PanelLines:
    """The whole screen but its last line, as `height` lines of `width` cells."""
    lab = picture.lab
    top = [_title(picture, width, glyphs), [(glyphs.horizontal * width, "rule")], *_fields(lab, width)]
    bottom = _formula(lab, width, glyphs)
    if picture.walk is not None:
        bottom += _walk(picture.walk, lab, width, glyphs)
    elif lab.taken is not None:
        sides = _sides(picture, width, glyphs)
        over = len(top) + len(bottom) + len(sides) + _message_room(width, height) + LEAST_HEIGHT - height
        # the chart needs its room too: the last words go, but never the first of both sides
        bottom += sides[: max(LEAST_SIDES, len(sides) - over)] if over > 0 else sides
    message = _message(lab, width, height)
    room = height - len(top) - len(bottom) - len(message)
    if room < LEAST_HEIGHT:  # what is asked and answered goes before the chart
        lines = [*top, *bottom]
        lines = lines[: max(0, height - len(message))]
        lines += [[] for _ in range(height - len(message) - len(lines))]
        return fitted([*lines, *message], width, height, glyphs)
    return fitted([*top, *_chart(lab, width, room, glyphs), *bottom, *message], width, height, glyphs)


def _title(picture: Picture, width: int, glyphs: GlyphSet) -> Line:
    right, of = picture.lab.score
    said = EXCEPT if picture.lab.taken is not None and picture.walk is None else HYPOTHETICAL
    score: Line = [(f"{right} of {of} right ", "strong")] if of else []
    left: Line = [
        (" ", "text"),
        ("roofline lab", "title-focus"),
        (f"  {glyphs.point_declared} ", "point-1"),
        (said, "warn"),
    ]
    return two_ends(left, score, width) if width >= line_cells(left) + line_cells(score) + 1 else exactly(left, width)


def _fields(lab: Lab, width: int) -> PanelLines:
    ridge = state.ridge(lab)
    value = state.ceiling(lab)
    first = [
        ("I", write(lab.intensity, INTENSITY) if lab.intensity is not None else "not set: i"),
        ("B", write(lab.bandwidth, BANDWIDTH) if lab.bandwidth is not None else "not set: b"),
        ("peak", write(lab.peak, PEAK)),
        ("ridge", write(ridge, INTENSITY) if ridge is not None else "-"),
    ]
    shown = write(value, PEAK) if lab.revealed and value is not None else "?" if lab.set else "-"
    if lab.prediction is not None:
        predicted = write(lab.prediction, CEILING)
    else:
        predicted = "nothing yet: p" if lab.set and not lab.revealed else "-"
    verdict = ""
    if lab.revealed and lab.prediction is not None and value is not None:
        verdict = "RIGHT" if state.is_right(lab.prediction, value) else "WRONG"
    second = [("predicted", predicted), ("ceiling", shown), ("", verdict)]
    if width >= NARROW:
        return [_row(first, (20, 16, 20, 20), width), _row(second, (36, 20, 20), width)]
    return [_row(part, (20, 20), width) for part in (first[:2], first[2:], second[:1], second[1:])]


def _row(facts: list[tuple[str, str]], widths: tuple[int, ...], width: int) -> Line:
    line: Line = [(" ", "text")]
    for (label, value), cells in zip(facts, widths, strict=False):
        role = {"RIGHT": "good", "WRONG": "bad"}.get(value, "note" if value.startswith(("not ", "nothing ")) else "strong")
        named = f"{label} " if label else ""
        line += [(named, "label"), (value, role), (" " * max(1, cells - len(named) - len(value)), "text")]
    return exactly(line, width)


def _chart(lab: Lab, width: int, height: int, glyphs: GlyphSet) -> PanelLines:
    roof = state.as_ceiling(lab)
    if roof is None:
        said = "there is no roof yet: b sets the bandwidth B, i the intensity I; w is a guided walk, ? says more"
        middle = [[], *([(" ", "text"), (part, "note")] for part in wrap(said, max(10, width - 2)))]
        return [*middle[:height], *([] for _ in range(height - len(middle)))]
    beside = TABLE_CELLS if width >= TABLE_FROM else 0
    stations = state.track(lab)
    at = state.station(lab)
    value = state.ceiling(lab)
    wrong = not (lab.revealed and lab.prediction is not None and value is not None and state.is_right(lab.prediction, value))
    lines = lab_lines(
        width - beside,
        height,
        roof,
        lab.intensity,
        stations,
        lab.at,
        glyphs,
        note=f"the selected roof: {_roof_words(lab)}",
        label=f"{write(at[0], INTENSITY)}: {write(at[1], PEAK)}" if at is not None else "",
        prediction=lab.prediction if wrong else None,
    )
    if not beside:
        return lines
    table = _stations(lab, height, glyphs)
    return [[*line, *exactly(cells, beside)] for line, cells in zip(lines, table, strict=True)]


def _roof_words(lab: Lab) -> str:
    return f"min({write(lab.peak, PEAK, 6)}, I x {write(lab.bandwidth, BANDWIDTH, 6)})" if lab.bandwidth is not None else ""


def _stations(lab: Lab, height: int, glyphs: GlyphSet) -> PanelLines:
    """The trace as a table: what is passed has its numbers, what is to come has none."""
    lines: PanelLines = [heads("   " + pad("I", 17) + pad("roof", 15, right=True))]
    stations = state.track(lab)
    at = -1 if lab.at is None else lab.at
    first = max(0, min(at + 3, len(stations)) - (height - 1))
    for number, (intensity, value) in enumerate(stations[first:], first):
        passed = number <= at or (lab.revealed and number == len(stations) - 1)
        mark = f" {glyphs.point_declared} " if number <= at else "   "
        role = "selected" if number == at else "number" if passed else "dim"
        shown = write(value, PEAK) if passed else "?"
        lines.append([(mark + pad(write(intensity, INTENSITY), 17) + pad(shown, 15, right=True), role)])
    lines = lines[:height]
    return [[("  ", "text"), *line] for line in lines] + [[] for _ in range(height - len(lines))]


def _formula(lab: Lab, width: int, glyphs: GlyphSet) -> PanelLines:
    """The formula with the numbers of where the trace is, and which of its two terms is the limit there."""
    at, stations = state.station(lab), state.track(lab)
    if at is None or lab.at is None:
        said = f"ceiling = {state.formula(lab, known=lab.revealed)}"
        more = "the roof is min(peak, I x B): the most that is possible"
    else:
        said = f"{'ceiling' if lab.at == len(stations) - 1 else 'roof here'} = {state.formula(lab, at[0])}"
        passed = f"{lab.at + 1} of {len(stations)}"
        more = f" {glyphs.separator} ".join((passed, state.limit(lab, at[0]), state.ONLY_TRACES))
    room = max(1, width - 2)
    parts = wrap(said, room)[:3] if width < NARROW else [cut(said, room, glyphs.ellipsis)]
    return [*([(" ", "text"), (part, "strong")] for part in parts), [(" ", "text"), (cut(more, room, glyphs.ellipsis), "note")]]


def _message_room(width: int, height: int) -> int:
    return 1 if width >= TABLE_FROM or height < 14 else 2


def _message(lab: Lab, width: int, height: int) -> PanelLines:
    """What was said last, in two lines where one is too short; their place is kept, so that the chart stands still."""
    room = _message_room(width, height)
    text = clean(lab.message)
    role = "good" if text.startswith("RIGHT") else "bad" if text.startswith("WRONG") else "warn"
    lines: PanelLines = [[(" ", "text"), (part, role)] for part in wrap(text, max(10, width - 2))[:room]]
    return [*([] for _ in range(room - len(lines))), *lines]


def _walk(walk: Walk, lab: Lab, width: int, glyphs: GlyphSet) -> PanelLines:
    """The stop of the walk: what it says, or what is to be learnt, and what is to be done now."""
    title = f" walk, stop {walk.at + 1} of {len(walk.stops)}: {clean(walk.title)} "
    lines: PanelLines = [
        [(glyphs.horizontal, "rule"), (title, "title"), (glyphs.horizontal * max(0, width - len(title) - 1), "rule")]
    ]
    done = lab.revealed and walk.stop.predict
    said = walk.stop.then if done and walk.stop.then else walk.stop.say
    text = wrap(clean(said), max(10, width - 2))
    lines += [[(" ", "text"), (part, "text")] for part in text]
    # every stop takes the same room, so that the chart stands still
    longest = max(len(wrap(part, max(10, width - 2))) for stop in walk.stops for part in (stop.say, stop.then))
    lines += [[] for _ in range(longest - len(text))]
    missing = walking.lacking(walk, lab)
    order = missing or ("the end: w leaves the walk" if walk.last else "enter goes on")
    lines.append([(f" {glyphs.right} ", "key"), (cut(order, max(1, width - 4), glyphs.ellipsis), "key-label")])
    return lines


def _sides(picture: Picture, width: int, glyphs: GlyphSet) -> PanelLines:
    """The hypothesis at the left, what is measured at the right; one below the other where there is no room for both."""
    half = (width - 3) // 2
    if width < 60:
        left, right = _potential(picture.lab, width), _measured(picture, width, glyphs)
        return [[(glyphs.horizontal * width, "rule")], *left, *right]
    left, right = _potential(picture.lab, half), _measured(picture, width - half - 3, glyphs)
    lines: PanelLines = [[(glyphs.horizontal * width, "rule")]]
    for at in range(max(len(left), len(right))):
        first = left[at] if at < len(left) else []
        second = right[at] if at < len(right) else []
        lines.append([*exactly(first, half), (f" {glyphs.vertical} ", "rule"), *exactly(second, width - half - 3)])
    return lines


def _potential(lab: Lab, width: int) -> PanelLines:
    taken, value = lab.taken, state.ceiling(lab)
    assert taken is not None
    said = [f"as taken, I {taken.sign} {digits(taken.intensity)}: {write(taken.ceiling, PEAK)}"]
    if taken.words:
        said.append(taken.words)
    here = f"here, I = {digits(lab.intensity)}" if lab.intensity is not None else "here, no I"
    if value is None or not lab.revealed:
        return _side(POTENTIAL, [*said, f"{here}: ?"], width)
    said.append(f"{here}: {write(value, PEAK)}")
    said.append(f"{value / taken.ceiling:.3g} x the ceiling: {NOT_A_SAVING}")
    return _side(POTENTIAL, said, width)


def _measured(picture: Picture, width: int, glyphs: GlyphSet) -> PanelLines:
    if not picture.measured:
        return _side(MEASURED, ["no job is watched here"], width)
    name, *said = picture.measured
    title = MEASURED_NOT if any(text.startswith("NOT ") for text in said) else MEASURED
    return _side(title, [middle(clean(name), max(10, width - 2), glyphs.ellipsis), *said], width)


def _side(title: str, said: list[str], width: int) -> PanelLines:
    lines: PanelLines = [[(" ", "text"), (title, "title")]]
    for text in said:
        lines += [[(" ", "text"), (part, "text")] for part in wrap(clean(text), max(10, width - 2))]
    return lines
