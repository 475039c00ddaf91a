"""The line at the bottom: keys and what they do, or a word to the person."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tuimon.app.action import Scope
from tuimon.app.keymap import actions
from tuimon.app.panels.frame import PanelLines
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line, clean, cut, fill


def draw(
    scope: Scope,
    message: str,
    hidden: list[tuple[int | str, str]],
    width: int,
    glyphs: GlyphSet,
    several: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
    replay: bool = False,
) -> PanelLines:
    """The footer. `hidden`: (number, title) of panels for which this terminal has no room; they are a key away.

    `several`: more than one process is watched, and there are keys for that. `labels`: what actions are called here, by id.
    `replay`: a recording is played.
    """
    if width <= 0:
        return []
    if message:
        return [[(" ", "text"), (cut(clean(message), max(1, width - 2), glyphs.ellipsis), "warn")]]
    parts: list[tuple[int, Line]] = []
    # what belongs to this kind of screen comes before what works everywhere
    panels = scope in ("main", "roofline")
    for action in sorted(actions(scope, several, replay), key=lambda action: action.scope == "both" and not panels):
        if action.footer is not None:
            parts.append((action.footer, [(action.shown, "key"), (" " + labels.get(action.id, action.label), "key-label")]))
    if panels:
        parts.insert(2, (4, [("1-7", "key"), (" full", "key-label")]))
        for number, title in hidden:
            parts.append((1, [(str(number), "key"), (f" {title}", "key-label")]))
    return [[(" ", "text"), *fill(parts, width - 2)]]
