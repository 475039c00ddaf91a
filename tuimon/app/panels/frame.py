"""What all panels have in common: the title line, and how their lines are brought to their size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line, ascii_only, cells, clean, cut, cut_line, exactly, line_cells, wrap

if TYPE_CHECKING:
    from tuimon.app.scene import Scene

PanelLines = list[Line]

CUT = "…"
"""What stands for the rest of a sentence; `fitted` puts what the terminal has in its place."""


def title_line(number: int | str, title: str, note: str | Line, width: int, focused: bool, glyphs: GlyphSet) -> Line:
    """`- 2 boundaries and graph breaks - 4 places --------`: a rule with a name on it; a focused panel has a mark as well.

    `note` is a remark beside the name, or runs with roles of their own where a panel has no room for a line of them.
    """
    mark = glyphs.right if focused else glyphs.horizontal
    role = "title-focus" if focused else "title"
    line: Line = [(mark, role), (f" {number} ", role), (title, role), (" ", "rule")]
    room = width - line_cells(line)
    if note and room > 6:
        runs: Line = [(note, "note")] if isinstance(note, str) else note
        runs = cut_line(runs, room - 3, glyphs.ellipsis)
        line += [(f"{glyphs.separator} ", "rule"), *runs, (" ", "rule")]
    rest = width - line_cells(line)
    if rest > 0:
        line.append((glyphs.horizontal * rest, "rule"))
    return exactly(line, width, "rule")


def fitted(lines: PanelLines, width: int, height: int, glyphs: GlyphSet) -> PanelLines:
    """Exactly `height` lines of exactly `width` cells, in characters that the terminal has."""
    out = [exactly(line, width) for line in lines[:height]]
    while len(out) < height:
        out.append([(" " * width, "text")] if width > 0 else [])
    if glyphs.name == "ascii":
        out = [[(ascii_only(text.replace(CUT, glyphs.ellipsis)), role) for text, role in line] for line in out]
    return out


def sentence(text: str, width: int, height: int, role: str = "note") -> PanelLines:
    """A sentence in a panel that has nothing to show, broken between words, and visibly cut where it has no room."""
    room = max(0, height)
    pieces = wrap(text, max(1, width - 2))
    if len(pieces) > room > 0:
        pieces = [*pieces[: room - 1], cut(" ".join(pieces[room - 1 :]), max(1, width - 2), CUT)]
    return [[(" ", "text"), (part, role)] for part in pieces[:room]]


def filter_note(shown: int, total: int, text: str) -> str:
    """What a filter hides."""
    return f"filter {clean(text)!r}: {shown} of {total}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 frame`, `2 frames`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def why_missing(scene: Scene, what: str) -> str | None:
    """Why something cannot be told of this target, if a source said so."""
    return scene.model.coverage.not_available.get(what)


NOT_IN_FILE = "not in this file"
"""What stands in the columns that a file of this kind cannot fill."""


def untold(scene: Scene, what: str) -> str:
    """Why a file of this kind does not tell this: a sentence that begins with `NOT_IN_FILE`; "" where it may."""
    return clean(scene.model.recorded.missing(what))


def title_room(title: str, width: int) -> int:
    """Cells for a remark in the title line of a panel of this title."""
    return max(0, width - cells(title) - 8)


def watched(scene: Scene) -> str:
    """What to add to "there was none" of a job that is over for us: it may have gone on where it was not watched."""
    if scene.model.target.how == "file":
        return " in this file"
    return "" if scene.model.target.ended == "exited" else " while tuimon watched"


def labelled(label: str, value: str, role: str = "number") -> Line:
    """A quiet label and its value."""
    return [(label + " ", "label"), (value, role)]


def bar(share: float | None, width: int, glyphs: GlyphSet) -> str:
    """A share of 0 to 1 as a horizontal bar; empty where it is not known."""
    if share is None or width <= 0:
        return " " * max(0, width)
    steps = len(glyphs.bar)
    filled = round(min(1.0, max(0.0, share)) * width * steps)
    full, part = divmod(filled, steps)
    text = glyphs.bar[-1] * full + (glyphs.bar[part - 1] if part else "")
    return text + glyphs.bar_empty * (width - cells(text))
