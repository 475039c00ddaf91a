"""Panels that are tables: sorting, filtering, the selection that stays on its row, and only the visible rows formatted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tuimon.app.filtering import matches
from tuimon.app.panels.frame import PanelLines, filter_note, sentence, title_line
from tuimon.app.scene import PanelView, Scene
from tuimon.draw.format import UNKNOWN
from tuimon.draw.table import UNBOUNDED, Cells, Column, head_line, layout, note_widths, row_line, window
from tuimon.draw.text import clean

Row = TypeVar("Row")

SPREAD = "[p10-p90]"


@dataclass(frozen=True, slots=True)
class Sort(Generic[Row]):
    """One order of the rows. `key` orders ascending; `descending` is the way it starts out."""

    name: str
    column: str | None
    key: Callable[[Scene, Row], Any]
    descending: bool = True


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """What makes a table of some rows of the model."""

    number: int | str
    title: str
    rows: Callable[[Scene], Sequence[Row]]
    """Oldest first."""
    key: Callable[[Row], str]
    text: Callable[[Row], str]
    """What a filter looks in."""
    sorts: tuple[Sort[Row], ...]
    columns: tuple[Column, ...]
    cells: Callable[[Scene, Row], Cells]
    note: Callable[[Scene, Sequence[Row], int], str]
    """Beside the title, in at most so many cells or a little more: what the numbers are."""
    empty: Callable[[Scene], str]
    refusal: bool = False
    """Whether it is the one with the room to say why tuimon could not attach."""
    hidden: Callable[[Scene], frozenset[str]] = lambda scene: frozenset()
    """Names of columns that would tell nothing of this job: their room goes to the others."""
    quiet: Callable[[Row], bool] = lambda row: False
    """Rows that step back: accepted, or asked for."""
    where: Callable[[Row], str] = lambda row: ""
    """Where it is, as `file:line` with the whole path, for what is copied."""


def arranged(table: Table[Row], scene: Scene, view: PanelView) -> list[Row]:
    """The rows that the filter lets through, in the order that the person chose."""
    rows = list(table.rows(scene))
    if view.filter:
        rows = [row for row in rows if matches(view.filter, table.text(row))]
    if table.sorts:
        sort = table.sorts[view.sort % len(table.sorts)]
        rows.sort(key=lambda row: sort.key(scene, row), reverse=sort.descending != view.reverse)
    elif view.reverse:
        rows.reverse()
    return rows


def keys(table: Table[Row], scene: Scene, view: PanelView) -> list[str]:
    """The keys of the rows in the order shown."""
    return [table.key(row) for row in arranged(table, scene, view)]


def copied(table: Table[Row], scene: Scene, key: str) -> str:
    """A row as a line of text: what all its columns say, in full; "" where it is gone."""
    row = next((row for row in table.rows(scene) if table.key(row) == key), None)
    if row is None:
        return ""
    cells, hidden = table.cells(scene, row), table.hidden(scene)
    said = []
    for column in table.columns:
        cell = cells.get(column.name)
        if cell is None or column.name in hidden:
            continue
        text = (cell(UNBOUNDED) if callable(cell) else cell)[0].strip()
        if text and text != UNKNOWN:
            said.append(f"{column.title} {text}".strip())
    where = clean(table.where(row))
    return f"{table.title}: {', '.join(said)}{f', at {where}' if where else ''}"


def place_cursor(view: PanelView, ordered: Sequence[str]) -> int | None:
    """Where the selection is now: on its row if it is still there, else on the row that took its place."""
    if not ordered:
        view.at = 0
        return None
    if view.cursor is not None:
        try:
            view.at = ordered.index(view.cursor)
        except ValueError:
            view.at = min(view.at, len(ordered) - 1)
        return view.at
    return None


def _not_attached(scene: Scene, refusal: bool) -> str | None:
    """What an empty table says of a job that nothing is known of; None once it was attached to."""
    target = scene.model.target
    if target.attached_ns is not None or scene.model.frames:
        return None
    if target.ended is not None:
        return f"not attached: {clean(target.ended_detail)}" if refusal else "not attached"
    return "not attached yet" if target.attaching is not None else None


def draw(table: Table[Row], scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    """The table as lines: the title, the column heads, the rows."""
    if height <= 0 or width <= 0:
        return []
    rows = arranged(table, scene, view)
    total = len(table.rows(scene)) if view.filter else len(rows)
    note = filter_note(len(rows), total, view.filter) if view.filter else table.note(scene, rows, width)
    if not rows:
        lines = [title_line(table.number, table.title, note if view.filter else "", width, focused, scene.glyphs)]
        why = (
            "nothing matches the filter; esc takes it away"
            if view.filter and total
            else _not_attached(scene, table.refusal) or table.empty(scene)
        )
        return lines + sentence(why, width, height - 1)
    at = place_cursor(view, [table.key(row) for row in rows])
    room = max(0, height - 2)
    view.page = max(1, room)
    view.top = window(len(rows), at if at is not None else view.top, view.top, room)
    visible = rows[view.top : view.top + room]
    cells = [table.cells(scene, row) for row in visible]
    hidden = table.hidden(scene)
    columns = [column for column in table.columns if column.name not in hidden]
    note_widths(columns, cells, view.widths)
    inner = width - 1
    placed = layout(columns, inner, view.widths)
    sort = table.sorts[view.sort % len(table.sorts)] if table.sorts else None
    mark = ""
    if not any(column.title == SPREAD for column, _ in placed.columns):
        note = note.replace(f" {SPREAD}", "")  # no column shows it
    if len(visible) < len(rows):
        note = f"{view.top + 1}-{view.top + len(visible)} of {len(rows)}; {note}"
    if sort is not None:
        mark = scene.glyphs.down if sort.descending != view.reverse else scene.glyphs.up
        told = (sort.column and sort.column not in hidden) or view.sort or view.reverse
        if told and not placed.has(sort.column):
            note = f"by {sort.name} {mark}; {note}"  # no column shows it
    lines = [title_line(table.number, table.title, note, width, focused, scene.glyphs)]
    if height < 2:
        return lines
    lines.append([(" ", "text"), *head_line(placed, inner, sort.column if sort else None, mark, scene.glyphs.ellipsis)])
    for offset, (row, row_cells) in enumerate(zip(visible, cells, strict=True)):
        chosen = focused and view.top + offset == at
        role = "selected" if chosen else ("quiet" if table.quiet(row) else None)
        edge = scene.glyphs.right if chosen else scene.glyphs.bullet if table.key(row) in view.marks else " "
        lines.append([(edge, role or "text"), *row_line(placed, row_cells, inner, scene.glyphs.ellipsis, role)])
    return lines
