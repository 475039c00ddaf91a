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


Build = Callable[[Scene, int], Paged]
"""From a scene and a width in cells to a page."""
