"""What to look at, most costly first: the findings as rows, with the evidence of the selected one below; and all frames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tuimon.app.panels import tabular
from tuimon.app.panels.frame import PanelLines, plural
from tuimon.app.panels.looking import latest_findings
from tuimon.app.panels.standing import answered
from tuimon.app.panels.tabular import Sort, Table
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import place
from tuimon.draw.table import Cells, Column
from tuimon.draw.text import Line, clean, cut, wrap
from tuimon.model.findings import Finding

FRAMES = "frames"
"""The key of the last row, which leads to all frames."""


class Row(NamedTuple):
    """A finding, or the row of the frames."""

    key: str
    number: int
    finding: Finding | None


def key_of(finding: Finding) -> str:
    """The same from second to second: numbers in its title change."""
    about = f"{finding.about.kind} {finding.about.key}" if finding.about is not None else ""
    return f"{finding.kind} {about} {finding.where}".rstrip()


def rows(scene: Scene) -> list[Row]:
    """All of them, the most important first, and the frames."""
    out: list[Row] = []
    seen: dict[str, int] = {}
    for number, finding in enumerate(latest_findings(scene), 1):
        key = key_of(finding)
        seen[key] = seen.get(key, 0) + 1
        out.append(Row(key if seen[key] == 1 else f"{key} #{seen[key]}", number, finding))
    if scene.model.frames:
        out.append(Row(FRAMES, len(out) + 1, None))
    return out


def find(scene: Scene, key: str) -> Finding | None:
    """The finding of this row; None where it is none any more."""
    return next((row.finding for row in rows(scene) if row.key == key), None)


def _words(row: Row) -> str:
    return row.finding.title if row.finding is not None else "all frames: entries of the limit, calls in eager"


def _cells(scene: Scene, row: Row) -> Cells:
    finding, ellipsis = row.finding, scene.glyphs.ellipsis
    if finding is None:
        return {
            "number": ("", "number"),
            "cost": (plural(len(scene.model.frames), "frame"), "number"),
            "title": lambda width: (cut(_words(row), width, ellipsis), "note"),
            "place": ("", "place"),
        }
    file, _, line = finding.where.rpartition(":")
    at_line = bool(file) and line.isdecimal()
    where = clean(finding.where)
    return {
        "number": (str(row.number), "number"),
        "cost": (fmt.duration(finding.cost_s), "strong" if finding.cost_s is not None else "number"),
        "title": lambda width: (cut(clean(finding.title), width, ellipsis), "warn"),
        "place": lambda width: (place(file, int(line), width, ellipsis) if at_line else cut(where, width, ellipsis), "place"),
    }


def _note(scene: Scene, shown: Sequence[Row], width: int) -> str:
    count = sum(1 for row in shown if row.finding is not None)
    return f"{plural(count, 'finding')}; cost: time seen so far" if count else "nothing stands out"


def _empty(scene: Scene) -> str:
    if scene.model.target.ended is not None:
        return "nothing stood out, and nothing compiled was seen"
    return "nothing stands out: findings come as steps are timed and as functions compile; a healthy job has none"


TABLE: Table[Row] = Table(
    number="w",
    title="what to look at",
    rows=rows,
    key=lambda row: row.key,
    text=lambda row: f"{_words(row)} {row.finding.where if row.finding is not None else ''}",
    sorts=(
        Sort("importance", None, lambda scene, row: row.number, descending=False),
        Sort("cost", "cost", lambda scene, row: (row.finding.cost_s or 0.0) if row.finding is not None else -1.0),
        Sort("place", "place", lambda scene, row: row.finding.where if row.finding is not None else "~", descending=False),
    ),
    columns=(
        Column("number", "", 2, right=True, rank=2),
        Column("cost", "cost", 8, right=True),
        Column("place", "place", 12, flex=1, most=32, snug=True, rank=1),
        Column("title", "what", 24, flex=4),
    ),
    cells=_cells,
    note=_note,
    empty=_empty,
    refusal=True,
)


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    shown = tabular.arranged(TABLE, scene, view)
    need = len(shown) + 2
    below = _evidence(scene, shown, view, width, height - need) if height - need >= LEAST_BELOW else []
    lines = tabular.draw(TABLE, scene, view, width, min(height, need) if below else height, focused)
    return [*lines, *below][: max(0, height)]


LEAST_BELOW = 4
"""Lines below the rows from which on the selected finding's evidence stands there."""


def _evidence(scene: Scene, shown: Sequence[Row], view: PanelView, width: int, room: int) -> PanelLines:
    """What the selected one is told by, and the next step; enter has it with its links."""
    if not shown:
        return []
    row = next((row for row in shown if row.key == view.cursor), shown[min(view.at, len(shown) - 1)])
    finding = row.finding
    if finding is None:
        return []
    inner = max(10, width - 4)
    out: PanelLines = [[(scene.glyphs.horizontal * width, "rule")]]
    out += [[(" ", "text"), (part, "warn")] for part in wrap(clean(finding.title), max(10, width - 2))]
    for text in finding.evidence:
        parts = wrap(clean(text), inner)
        out += [[(f" {scene.glyphs.bullet if at == 0 else ' '} ", "text"), (part, "text")] for at, part in enumerate(parts)]
    parts = wrap(f"next step: {clean(finding.next_step)}", max(10, width - 2))
    step: PanelLines = [[(" ", "text"), (part, "strong")] for part in parts]
    return [*out[: max(2, room - len(step))], *step][:room]


def _answer(scene: Scene) -> Line:
    found = latest_findings(scene)
    if not found:
        where = "in this file" if scene.model.target.how == "file" else "in what was seen so far"
        return [(f"nothing stands out {where}", "good")] if scene.model.frames else [(_empty(scene), "text")]
    dearest = max(found, key=lambda one: one.cost_s or 0.0)
    if not dearest.cost_s:
        return [(f"{len(found)} to look at, of no known cost: ", "strong"), (clean(found[0].title), "warn")]
    row = next(row for row in rows(scene) if row.finding is dearest)
    file, _, line = dearest.where.rpartition(":")
    at = f" at {place(file, int(line), 32, scene.glyphs.ellipsis)}" if file and line.isdecimal() else ""
    return [
        (f"{len(found)} to look at", "strong"),
        (f"; number {row.number} costs most, " if len(found) > 1 else ": ", "text"),
        (f"{fmt.duration(dearest.cost_s)} so far", "text"),
        (at, "place"),
    ]


def copied(scene: Scene, key: str) -> str:
    """What to paste into a ticket."""
    finding = find(scene, key)
    return sentence(finding) if finding is not None else ""


def sentence(finding: Finding) -> str:
    """A finding as a text for a ticket."""
    parts = [finding.title]
    if finding.where:
        parts.append(f"at {finding.where}")
    if finding.cost_s is not None:
        parts.append(f"costs {fmt.duration(finding.cost_s)} so far")
    return clean("; ".join([*parts, *finding.evidence, f"next step: {finding.next_step}"]))


PANEL = Panel(
    number="w",
    id="findings",
    title="what to look at",
    sections=("target", "recompiles", "compiles", "frames", "steps", "gpu", "host"),
    draw=_draw,
    keys=partial(tabular.keys, TABLE),
    sorts=tuple(sort.name for sort in TABLE.sorts),
    filterable=True,
    rows=lambda scene: len(rows(scene)),
    help=(
        "What a person should look at: first what makes the whole compilation void, then what runs in eager unseen, then by "
        "the time that it cost so far. A healthy job has none. Below the rows: what the selected one is told by, and the next "
        "step. enter shows its page, enter there its line of source with Dynamo's explanation and hints; esc leads back. The "
        "last row is all frames with their entries and calls."
    ),
    answer=answered(_answer),
    copied=copied,
)
