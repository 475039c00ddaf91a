"""The last line of every screen: keys and what they do, or a word to the person; and which key stands where, for the mouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tuimon.app.action import Action, Scope
from tuimon.app.keymap import actions
from tuimon.app.keymap.main import ZOOMS
from tuimon.app.keymap.roofline import BESIDE
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line, clean, cut, fill, line_cells

GAP = 2


class Foot(NamedTuple):
    """A footer, drawn."""

    line: Line
    spans: tuple[tuple[int, int, Action], ...] = ()
    """(first cell, the cell behind the last one, what a click there does)."""

    def at(self, x: int) -> Action | None:
        """What a click into this cell does."""
        return next((action for begin, end, action in self.spans if begin <= x < end), None)


def foot(
    scope: Scope,
    width: int,
    glyphs: GlyphSet,
    *,
    message: str = "",
    hidden: Sequence[tuple[int | str, str]] = (),
    labels: Mapping[str, str] = MappingProxyType({}),
    ranks: Mapping[str, int | None] = MappingProxyType({}),
    several: bool = False,
    replay: bool = False,
) -> Foot:
    """The footer of a scope in at most `width` cells.

    `hidden`: (number, title) of panels for which this terminal has no room; they are a key away. `labels`: what actions are
    called here, by id. `ranks`: their ranks here (None: left out). `several`: more than one process is watched, and there are
    keys for that. `replay`: a recording is played.
    """
    if width <= 0:
        return Foot([])
    if message:
        return Foot([(" ", "text"), (cut(clean(message), max(1, width - 2), glyphs.ellipsis), "warn")])
    panels = scope in ("main", "roofline")
    given = {**(BESIDE if scope == "roofline" else {}), **ranks}
    parts: list[tuple[int, Line, Action]] = []
    # what belongs to this kind of screen comes before what works everywhere
    for action in sorted(actions(scope, several, replay), key=lambda action: action.scope == "both" and not panels):
        rank = given.get(action.id, action.footer)
        if rank is not None:
            parts.append((rank, _words(action.shown, labels.get(action.id, action.label)), action))
    if panels:
        parts.insert(2, (4, _words(f"1-{ZOOMS[-1].shown}", "full"), ZOOMS[0]))
        shown = {action.shown: action for action in ZOOMS}
        parts += [(1, _words(str(number), title), shown[str(number)]) for number, title in hidden if str(number) in shown]
    return _placed(parts, width - 2)


def _words(keys: str, label: str) -> Line:
    return [(keys, "key"), (f" {label}", "key-label")]


def _placed(parts: list[tuple[int, Line, Action]], width: int) -> Foot:
    line: Line = [(" ", "text"), *fill([(rank, part) for rank, part, _ in parts], width, GAP)]
    # `fill` keeps the order and leaves parts out whole: they are found again as they stand
    kept, at, spans = iter(parts), 1, []
    for first in range(1, len(line), 3):
        runs = line[first : first + 2]
        action = next(action for _, part, action in kept if part == runs)
        end = at + line_cells(runs)
        spans.append((at, end, action))
        at = end + GAP
    return Foot(line, tuple(spans))
