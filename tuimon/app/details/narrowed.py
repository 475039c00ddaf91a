"""A page of which only the lines are shown that hold a text, and a page as it fits on the screen."""

from __future__ import annotations

from dataclasses import replace

from tuimon.app.details.paged import Link, Paged
from tuimon.app.filtering import matches
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line, cut, exactly

LEAST_BELOW = 11
"""Lines that pinned ones leave to those that scroll, where there are so many."""


def narrowed(page: Paged, wanted: str) -> Paged:
    """Only the lines that the filter lets through, and their links; pinned ones stay."""
    if not wanted:
        return page
    kept = [at for at, line in enumerate(page.lines) if at < page.pinned or matches(wanted, "".join(text for text, _ in line))]
    new = {at: number for number, at in enumerate(kept)}
    links = tuple(Link(new[link.line], link.to) for link in page.links if link.line in new)
    here = new.get(page.here) if page.here is not None else None
    return replace(page, lines=[page.lines[at] for at in kept], links=links, here=here)


def head_of(page: Paged, room: int, width: int, glyphs: GlyphSet) -> list[Line]:
    """The pinned lines as far as they leave room for others; the last one says where there were more."""
    most = min(page.pinned, max(0, room - LEAST_BELOW))
    if most == page.pinned:
        return page.lines[:most]
    if most == 0:
        return []
    text = "".join(text for text, _ in page.lines[most - 1])
    role = next((role for text, role in page.lines[most - 1] if text.strip()), "text")
    return [*page.lines[: most - 1], [(cut(f"{text.rstrip()} {glyphs.ellipsis}", width, glyphs.ellipsis), role)]]


def with_signs(page: Paged, selected: int | None, width: int, glyphs: GlyphSet) -> list[Line]:
    """The lines with a sign at the edge of those that lead on; the selected one looks selected."""
    lines = list(page.lines)
    for number, link in enumerate(page.links):
        line = lines[link.line]
        first, role = line[0] if line else (" ", "text")
        rest = first[1:] if first.startswith(" ") else first
        if number == selected:
            runs = exactly([(rest, role), *line[1:]], max(0, width - 1))
            lines[link.line] = [(glyphs.right, "selected"), *((text, "selected") for text, _ in runs)]
        else:
            lines[link.line] = [(glyphs.separator, "key"), (rest, role), *line[1:]]
    return lines
