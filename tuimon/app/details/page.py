"""The parts that pages of details are made of."""

from __future__ import annotations

from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.table import heads
from tuimon.draw.text import Line, cells, clean, pad, wrap
from tuimon.model.statistics import RULE, Durations

LABEL_CELLS = 22


def heading(text: str) -> list[Line]:
    """An empty line and a title."""
    return [[], [(" " + text, "title")]]


def fact(label: str, value: str, width: int, role: str = "number") -> list[Line]:
    """A label and its value; a long value goes on below itself."""
    value = clean(value) or fmt.UNKNOWN
    parts = wrap(value, max(10, width - LABEL_CELLS - 3))
    lines: list[Line] = [[("  " + pad(label, LABEL_CELLS), "label"), (parts[0], role)]]
    lines += [[("  " + " " * LABEL_CELLS, "label"), (part, role)] for part in parts[1:]]
    return lines


def prose(text: str, width: int, role: str = "text", indent: int = 2) -> list[Line]:
    """A paragraph; line breaks in it are kept."""
    out: list[Line] = []
    for line in text.split("\n"):
        out += [[(" " * indent, "text"), (part, role)] for part in wrap(clean(line), max(10, width - indent - 1))]
    return out


def populations(scene: Scene, named: list[tuple[str, str, Durations]], width: int) -> list[Line]:
    """A table of populations: n, median, spread, total, and which calls they are."""
    lines: list[Line] = [heads(f"{'':22}{'n':>8}  {'median':>8}  {'[p10-p90]':>16}  {'total':>8}")]
    for name, what, durations in named:
        summary = durations.summary
        numbers = (
            f"{fmt.count(durations.n):>8}  {fmt.duration(summary.median):>8}  "
            f"{fmt.spread(summary.p10, summary.p90):>16}  {fmt.duration(summary.total if durations.n else None):>8}"
        )
        line: Line = [("  " + pad(name, 20), "label"), (numbers, "number")]
        if what and cells(numbers) + 26 + len(what) <= width:
            line.append(("  " + what, "note"))
        lines.append(line)
    lines += prose(f"{RULE}; host time", width, "note")
    return lines
