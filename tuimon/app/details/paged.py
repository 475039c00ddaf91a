"""What a page shows: its lines, and where its links lead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tuimon.app.scene import Scene
from tuimon.draw.text import Line
from tuimon.model.about import About


class Source(NamedTuple):
    """A line of source, and what is to be said above it."""

    file: str
    line: int
    function: str = ""
    head: tuple[str, ...] = ()
    """The explanation and the hints, a sentence each."""


class Link(NamedTuple):
    """A line of a page that leads on."""

    line: int
    """Its index among the page's lines."""
    to: About | Source


@dataclass(frozen=True, slots=True)
class Paged:
    """A page, drawn."""

    lines: list[Line]
    links: tuple[Link, ...] = ()
    copied: str = ""
    """What `y` copies of it."""
    pinned: int = 0
    """So many lines at the top stay while the others scroll."""
    here: int | None = None
    """The line that stands in the middle when the page opens; None: it opens at its top."""


class Linked(list[tuple[str, str]]):
    """A line of a page that leads on, while the page is being made: `paged` makes links of them."""

    def __init__(self, line: Line, to: About | Source) -> None:
        super().__init__(line)
        self.to = to


def linked(lines: list[Line], to: About | Source | None) -> list[Line]:
    """The same lines; the first of them leads there."""
    return [Linked(lines[0], to), *lines[1:]] if lines and to is not None else lines


def paged(lines: list[Line], copied: str = "", pinned: int = 0, here: int | None = None) -> Paged:
    """A page of these lines with their links."""
    if lines and not lines[0]:  # of a heading: the page has a rule above it
        lines = lines[1:]
    links = tuple(Link(at, line.to) for at, line in enumerate(lines) if isinstance(line, Linked))
    return Paged(lines, links, copied, pinned, here)


Build = Callable[[Scene, int], Paged]
"""From a scene and a width in cells to a page."""
