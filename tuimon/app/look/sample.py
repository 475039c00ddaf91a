"""The choice of a theme, drawn: the list of themes, and beside it a sample of every role in the one that is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuimon.app.look.roles import ROLES
from tuimon.app.look.themes import Loaded
from tuimon.app.panels.frame import PanelLines, title_line
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.table import window
from tuimon.draw.text import Line, cells, clean, cut, exactly, pad, wrap

HEAD = 2
"""Lines above the list."""

LIST, BESIDE, NAME = 36, 66, 13
"""Cells of the list, of a terminal from which on the sample stands beside it, and of a theme's name."""

GONE = "its file is gone; shown as it was"


@dataclass(frozen=True, slots=True)
class Row:
    """A theme, or a file that cannot be used."""

    key: str
    name: str
    title: str
    theme: bool
    """Whether it can be shown."""
    remark: str = ""
    """All that is to be said of it, where that is more than its title."""


def rows_of(loaded: Loaded, folder: str) -> list[Row]:
    """The rows, themes first. A theme whose file is no longer good says so."""
    rows = []
    for theme in loaded.themes.values():
        file = loaded.yours.get(theme.name)
        remark, title = "", theme.title
        if file is not None:
            remark, title = f"yours, in {folder}/{file}", f"yours: {theme.title}"
            if file in loaded.broken:
                remark = f"{remark}: {loaded.broken[file]}; shown as it was"
                title = "broken; shown as it was"
            elif file in loaded.gone:
                remark, title = f"{remark}: {GONE}", GONE
        rows.append(Row(theme.name, theme.name, title, True, remark))
    for file, why in loaded.broken.items():
        if file not in loaded.yours.values():
            rows.append(Row(f"file {file}", file, why, False, f"{folder}/{file} cannot be used: {why}"))
    return [Row(row.key, clean(row.name), clean(row.title), row.theme, clean(row.remark)) for row in rows]


def draw(rows: Sequence[Row], at: int, top: int, before: str, width: int, height: int, glyphs: GlyphSet) -> PanelLines:
    """The screen but for its keys. `at` is the selected row, `top` the first one shown, `before` the theme to go back to."""
    row = rows[at]
    answer: Line = [(" theme ", "label"), (row.name, "strong"), (": " + (row.title if row.theme else "cannot be used"), "text")]
    if row.theme and row.key != before:
        answer += [("; enter keeps it, esc puts ", "note"), (before, "strong"), (" back", "note")]
    lines: PanelLines = [answer, [(glyphs.horizontal * width, "rule")]]
    beside = width >= BESIDE
    across = LIST if beside else width
    room = list_room(rows, width, height)
    listed = [
        _row(one, top + number == at, one.key == before, across, glyphs) for number, one in enumerate(rows[top : top + room])
    ]
    told = [[(" " + part, "note" if row.theme else "warn")] for part in wrap(row.remark, across - 3)] if row.remark else []
    body = [*listed, [], *told] if told else listed
    if not beside:
        return [*lines, *body, [], *sample(width, height - HEAD - len(body) - 1, glyphs)]
    right = sample(width - LIST - 1, height - HEAD, glyphs)
    for number in range(height - HEAD):
        one = exactly(body[number], LIST + 1) if number < len(body) else [(" " * (LIST + 1), "text")]
        lines.append([*one, *(right[number] if number < len(right) else [])])
    return lines


def list_room(rows: Sequence[Row], width: int, height: int) -> int:
    """How many rows of the list are shown: all where there is room."""
    free = height - HEAD
    return max(1, min(len(rows), free - 6 if width >= BESIDE and free > 12 else free))


def scrolled(rows: Sequence[Row], at: int, top: int, width: int, height: int) -> int:
    """The first row to show, so that the selected one is seen."""
    return window(len(rows), at, top, list_room(rows, width, height))


def _row(row: Row, chosen: bool, before: bool, width: int, glyphs: GlyphSet) -> Line:
    mark = glyphs.mark_on if before else " "
    name = pad(cut(row.name, NAME, glyphs.ellipsis), NAME)
    text = f"{mark} {name} {row.title if row.theme else 'cannot be used'}".rstrip()
    role = "selected" if chosen else ("text" if row.theme else "warn")
    line: Line = [(glyphs.right if chosen else " ", role), (cut(text, width - 1, glyphs.ellipsis), role)]
    return exactly(line, width, role if chosen else "text")


def sample(width: int, height: int, glyphs: GlyphSet) -> PanelLines:
    """Pieces of the monitor's screens, and under them every role by its name, each in its own look."""
    if width < 24 or height <= 0:
        return []
    names = list(ROLES)
    across = max(map(len, names)) + 2
    columns = max(1, (width + 2) // across)
    down = -(-len(names) // columns)
    pieces = [exactly(line, width) for line in _pieces(width, glyphs)]
    lines = pieces if height >= len(pieces) + min(down, 4) else []
    if not lines or height > len(lines) + down:
        lines.append(title_line("", "roles", f"{len(names)} of them", width, False, glyphs))
    for y in range(down):
        line: Line = []
        for name in names[y::down]:
            line += [(name, name), (" " * (across - cells(name)), "text")]
        lines.append(exactly(line, width))
    return lines[:height]


def _pieces(width: int, glyphs: GlyphSet) -> PanelLines:
    chart = glyphs.spark
    return [
        title_line(2, "boundaries", "as they look", width, True, glyphs),
        [(" share", "head"), (glyphs.down, "head"), ("  median  place        reason", "head")],
        [(glyphs.right, "selected"), ("17.0%  4.08 ms  model.py:57  Tensor.item()".ljust(width - 1), "selected")],
        [("  9.0%", "strong"), ("  2.16 ms  ", "number"), ("model.py:41", "place"), ("  a logger", "break")],
        [("  0.1%  24.0 us  train.py:33  accepted", "quiet")],
        [(" steps ", "label"), (chart[:5] + chart[2:6], "spark"), (" slow 3.1x", "warn"), ("  recompile", "recompile")],
        [(" ", "text"), (glyphs.mark_on, "good"), (" running ", "text"), ("compile 12 s ", "compile"), ("refused ", "bad")],
    ]
