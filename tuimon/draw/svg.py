"""A screen of text as an SVG picture: for documents, and for looking at a theme without a terminal.

Nothing is fetched by whoever shows it: no font, no script. Each piece of text is told how wide it is, so columns stay under
one another whatever monospaced font is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tuimon.draw.text import cells, clean, one_line

Run = tuple[str, str | None, str | None, frozenset[str]]
"""Text, its colour and its ground ("#rrggbb"; None: the screen's own), and attributes of a theme: bold, dim, .."""

CELL, LINE, SIZE = 8.4, 17, 14
"""Pixels: a cell across, a line down, the font."""
EDGE = 10
"""Pixels around the text."""

FONTS = "'DejaVu Sans Mono','Cascadia Mono',Menlo,Consolas,'Liberation Mono',monospace"

_WORDS = {"bold": "font-weight:bold", "italic": "font-style:italic", "dim": "opacity:.65"}
_LINES = {"underline": "underline", "strike": "line-through"}


def svg(rows: Sequence[Sequence[Run]], width: int, height: int, *, title: str, ground: str, text: str) -> str:
    """These rows as a picture of a terminal of `width` x `height` cells, with the screen's own two colours ("#rrggbb").

    `title` is what a screen reader says of it.
    """
    across, down = round(width * CELL + 2 * EDGE), height * LINE + 2 * EDGE
    classes: dict[str, str] = {}
    grounds: list[str] = []
    texts: list[str] = []
    for y, row in enumerate(rows[:height]):
        x = 0
        for words, color, behind, attributes in _joined(_turned(run, ground, text) for run in row):
            words = one_line(words)  # of control characters an XML file may have none, and a name may hold any
            size = cells(words)
            left = _number(EDGE + x * CELL)
            if behind is not None:
                grounds.append(
                    f'<rect x="{left}" y="{EDGE + y * LINE}" width="{_number(size * CELL)}" height="{LINE}" fill="{behind}"/>'
                )
            if words.strip() or attributes & _LINES.keys():
                look = _look(color, attributes)
                name = classes.setdefault(look, f"t{len(classes)}") if look else ""
                told = f' class="{name}"' if name else ""
                wide = _number(size * CELL)
                base = EDGE + y * LINE + SIZE - 1
                texts.append(f'<text x="{left}" y="{base}" textLength="{wide}"{told}>{escape(words, quote=False)}</text>')
            x += size
    styles = "".join(f".{name}{{{look}}}" for look, name in classes.items())
    size_of_it = f'viewBox="0 0 {across} {down}" width="{across}" height="{down}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" {size_of_it} role="img">',
            f"<title>{escape(clean(title), quote=False)}</title>",
            f"<style>text{{font:{SIZE}px {FONTS};white-space:pre;fill:{text}}}{styles}</style>",
            f'<rect width="{across}" height="{down}" rx="6" fill="{ground}"/>',
            *grounds,
            *texts,
            "</svg>\n",
        ]
    )


def _turned(run: Run, ground: str, text: str) -> Run:
    """A run without `reverse`: its two colours have changed places."""
    words, color, behind, attributes = run
    if "reverse" in attributes:
        color, behind = behind or ground, color or text
    return words, None if color == text else color, None if behind == ground else behind, attributes - {"reverse"}


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Neighbours of one look as one; blanks take the look of what stands before them where nothing of it shows."""
    out: list[Run] = []
    for run in runs:
        words, color, behind, attributes = run
        if out:
            before, before_color, before_behind, before_attributes = out[-1]
            blank = not words.strip() and not (attributes | before_attributes) & _LINES.keys()
            if behind == before_behind and (blank or (color, attributes) == (before_color, before_attributes)):
                out[-1] = before + words, before_color, before_behind, before_attributes
                continue
        out.append(run)
    return out


def _look(color: str | None, attributes: frozenset[str]) -> str:
    parts = [f"fill:{color}"] if color is not None else []
    parts += [words for name, words in _WORDS.items() if name in attributes]
    lines = [line for name, line in _LINES.items() if name in attributes]
    if lines:
        parts.append(f"text-decoration:{' '.join(lines)}")
    return ";".join(parts)


def _number(pixels: float) -> str:
    return f"{pixels:.1f}".removesuffix(".0")
