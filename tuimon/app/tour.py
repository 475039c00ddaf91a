"""The tour: stops that say what is seen and what to press, and go on when the person is where that leads."""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuimon import toml
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line, cut, line_cells, wrap
from tuimon.plain import NotPlain, open_plain

HEIGHT = 3
"""Lines of the strip at the bottom."""

MOST_BYTES = 1 << 16

WORDS = (
    "overview", "panel", "step selected", "page", "deeper", "step page", "findings", "lab", "revealed", "help",
    "never",
)  # fmt: skip
"""What `until` may wait for: where the person is. "panel" is followed by its id; "never": only the key that skips goes on."""


class TourError(ValueError):
    """The stops cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop."""

    press: str
    """The keys to press, as a person writes them."""
    say: str
    """What is seen, and what it is good for: two lines of 78 cells."""
    until: str
    """Where they lead."""


@dataclass(slots=True)
class Tour:
    """The stops, and the one that is on."""

    stops: tuple[Stop, ...]
    at: int = 0
    name: str = "tour"

    @property
    def stop(self) -> Stop:
        """The one that is on."""
        return self.stops[self.at]

    def look(self, here: Set[str]) -> bool:
        """Go on where the person is where the stop leads. Gives whether it went on."""
        return self.stop.until in here and self.skip()

    def skip(self) -> bool:
        """The next stop in any case; the last one stays."""
        if self.at + 1 >= len(self.stops):
            return False
        self.at += 1
        return True


def parse(data: bytes, origin: str, name: str = "tour") -> Tour:
    """The tour from the bytes of a TOML file; `origin` names it in errors. Raises TourError."""
    try:
        document = toml.parse(data)
    except toml.NotToml as error:
        raise TourError(f"{origin}: {error}") from None
    stops = document.get("stop")
    if set(document) != {"stop"} or not isinstance(stops, list) or not stops:
        raise TourError(f"{origin}: a tour has [[stop]] entries, and nothing else")
    return Tour(tuple(_stop(entry, f"{origin}: stop {number}") for number, entry in enumerate(stops, 1)), name=name)


def _stop(entry: dict[str, Any], where: str) -> Stop:
    if set(entry) != {"press", "say", "until"} or not all(isinstance(text, str) and text.strip() for text in entry.values()):
        raise TourError(f"{where}: it has press, say and until, each a text")
    until = " ".join(entry["until"].split())
    if until not in WORDS and not until.startswith("panel "):
        raise TourError(f"{where}: until must be one of {', '.join(WORDS)}")
    return Stop(" ".join(entry["press"].split()), " ".join(entry["say"].split()), until)


def load(path: Path, name: str = "tour") -> Tour:
    """The tour in a file; `name` is what it is called on the screen. Raises TourError."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            data = file.read(MOST_BYTES)
    except NotPlain as error:
        raise TourError(f"{path} {error.sentence}") from None
    except OSError as error:
        raise TourError(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse(data, path.name, name)


def strip(tour: Tour, width: int, glyphs: GlyphSet) -> list[Line]:
    """The lines at the bottom: where one is and what to press, then what is seen."""
    stop, last = tour.stop, tour.at + 1 == len(tour.stops)
    mark = f"{glyphs.horizontal} "
    head: Line = [
        (mark, "rule"),
        (f"{tour.name} {tour.at + 1} of {len(tour.stops)}", "title"),
        ("  press ", "text"),
        (stop.press, "key"),
    ]
    tail: Line = [("  ", "rule"), ("ctrl+t", "key"), (" skip  ", "key-label")] if not last else [("  ", "rule")]
    tail += [("ctrl+c", "key"), (" end ", "key-label")]
    between = width - line_cells(head) - line_cells(tail)
    if between >= 1:
        head += [(" ", "rule"), (glyphs.horizontal * (between - 1), "rule"), *tail]
    said = wrap(stop.say, max(10, width - 2))
    if len(said) > HEIGHT - 1:
        said = [*said[: HEIGHT - 2], cut(" ".join(said[HEIGHT - 2 :]), max(1, width - 2), glyphs.ellipsis)]
    return [head, *([(f" {line}", "strong")] for line in said)]
