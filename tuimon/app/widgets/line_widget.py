"""The one base of all that is drawn live: lines of (text, role), of which only those that differ are painted again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tuimon.draw.text import Line, harmless_line, line_cells

if TYPE_CHECKING:
    from tuimon.app.look.themed import ThemedApp

_ALONE = re.compile("[ -~\u00b7\u2500-\u259f\u2800-\u28ff]")
"""What lines are made of, but for names of the job's: ASCII, box drawing, blocks, braille."""


class LineWidget(Widget):
    """A widget of fixed lines. Hand it all its lines with `show`; it finds out what changed.

    Textual paints every cell of a dirty region, so the difference is found here, line by line, and a line is dirty only up to
    its last cell that changed.
    """

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self._lines: list[Line] = []
        self._styles_of_roles: dict[str, Style] = {}

    @property
    def lines(self) -> list[Line]:
        """What is on the widget now."""
        return self._lines

    @property
    def drawn(self) -> bool:
        """Whether it has lines, of the size that it has now."""
        return bool(self._lines)

    def show(self, lines: list[Line]) -> int:
        """Show these lines from the top. Gives how many of them differ from what was there."""
        old = self._lines
        if old == lines:
            return 0
        self._lines = lines
        regions = []
        for y in range(max(len(old), len(lines))):
            before = old[y] if y < len(old) else []
            after = lines[y] if y < len(lines) else []
            if before != after:
                regions.append(Region(0, y, _changed_until(before, after, self.size.width), 1))
        if regions:
            self.refresh(*regions)
        return len(regions)

    def render_line(self, y: int) -> Strip:
        """One line for Textual."""
        width = self.size.width
        base = self._style("text")
        if y >= len(self._lines):
            return Strip.blank(width, base)
        segments: list[Segment] = []
        text, style = "", base
        for run, role in self._lines[y]:
            run = harmless_line(run)  # panels clean what is the job's: this is for what they missed
            run_style = self._style(role)
            if run_style == style or (not run.strip(" ") and _blank_looks_alike(run_style, style)):
                text += run
            else:
                if text:
                    segments.append(Segment(text, style))
                text, style = run, run_style
        if text:
            segments.append(Segment(text, style))
        return Strip(segments, line_cells(self._lines[y])).adjust_cell_length(width, base)

    def notify_style_update(self) -> None:
        """Another theme: the looks are looked up anew."""
        self._styles_of_roles.clear()
        super().notify_style_update()

    def _style(self, role: str) -> Style:
        style = self._styles_of_roles.get(role)
        if style is None:
            style = cast("ThemedApp[Any]", self.app).style_of(role)
            self._styles_of_roles[role] = style
        return style


def _changed_until(before: Line, after: Line, width: int) -> int:
    """The cell behind the last difference of two lines: what stands after it need not be sent again."""
    if line_cells(before) != line_cells(after):
        return width
    same = 0
    for (old, old_role), (new, role) in zip(reversed(before), reversed(after), strict=False):
        if (old, old_role) != (new, role):
            same += _same_at_end(old, new) if old_role == role else 0
            break
        same += line_cells([(new, role)])
    return max(1, width - same)


def _same_at_end(old: str, new: str) -> int:
    """How many cells two texts have in common at their end, of the characters that stand alone: each takes one cell."""
    pairs = enumerate(zip(reversed(old), reversed(new), strict=False))
    return next((at for at, (one, other) in pairs if one != other or not _ALONE.match(one)), min(len(old), len(new)))


def _blank_looks_alike(one: Style, other: Style) -> bool:
    """Whether spaces look the same in both: colour of text does not show on them, ground and lines do."""
    return (
        one.bgcolor == other.bgcolor
        and not one.underline
        and not other.underline
        and not one.reverse
        and not other.reverse
        and not one.strike
        and not other.strike
    )
