"""Where everything is on the screen: from a size to boxes. Pure, so every size from 1x1 up can be tested.

Three forms. Wide and high terminals show all panels at once, in the order of their numbers as one reads; others one column with
the panels that matter most, as many as fit without cramping (the rest is a number key away); a tiny one shows a few useful
lines instead of a complaint. A table gets no more lines than it has rows for, so what it does not need goes to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

TINY_WIDTH, TINY_HEIGHT = 60, 15
WIDE_WIDTH, WIDE_BODY = 110, 28
"""Cells across, and lines between the target and the keys."""
TABLE_HEAD = 2
"""Lines of a table that are no rows: its title, and its heads."""
LEAST_LOG = 4
EMPTY = 3
"""Lines of a table without rows: its title, and a sentence that says what would fill it."""

COLUMN_GAP = 1


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on the screen, in cells."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is where. Parts that are not there are not shown."""

    target: Box | None
    keys: Box | None
    panels: dict[str, Box] = field(default_factory=dict)
    tiny: Box | None = None


# (panel, least height, height beyond which others come first, part of the room after that), most important panel first
_COLUMN = (
    ("now", 3, 6, 0),
    ("boundaries", 5, 9, 4),
    ("recompiles", 4, 6, 2),
    ("regions", 5, 9, 4),
    ("surroundings", 2, 4, 0),
    ("log", 4, 6, 2),
    ("roofline", 9, 12, 2),
)
_TABLES = {"boundaries": 5, "recompiles": 4, "regions": 5}
_COLUMN_ORDER = ("now", "boundaries", "recompiles", "regions", "surroundings", "roofline", "log")


def plan(
    width: int,
    height: int,
    zoomed: str | None = None,
    ranks: bool = False,
    gpus: bool = False,
    rows: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """The boxes of a terminal of this size; `zoomed` names a panel that has it all to itself, `ranks`: they need a line;
    `gpus`: they need one beside the host's. `rows`: how many rows tables have, where that is known."""
    if width <= 0 or height <= 0:
        return Plan(None, None)
    tiny = width < TINY_WIDTH or height < TINY_HEIGHT
    if tiny and zoomed is None:
        return Plan(None, None, tiny=Box(0, 0, width, height))
    top = 2 + ranks if height >= TINY_HEIGHT else (1 if height >= 6 else 0)
    bottom = 1 if height >= 6 else 0
    target = Box(0, 0, width, top) if top else None
    keys = Box(0, height - bottom, width, bottom) if bottom else None
    body = height - top - bottom
    if zoomed is not None:
        return Plan(target, keys, {zoomed: Box(0, top, width, body)})
    needs = {name: max(EMPTY, TABLE_HEAD + count) for name, count in rows.items()}
    if width >= WIDE_WIDTH and body >= WIDE_BODY:
        return Plan(target, keys, _wide(width, top, body, gpus, needs))
    return Plan(target, keys, _column(width, top, body, gpus, needs))


def _column(width: int, top: int, body: int, gpus: bool, needs: Mapping[str, int]) -> dict[str, Box]:
    heights: dict[str, int] = {}
    left = body
    for name, least, _, _ in _COLUMN:
        if name == "surroundings" and gpus and least < left:
            least += 1
        if least <= left:
            heights[name] = least
            left -= least
    for name in heights:
        spare = max(0, heights[name] - needs.get(name, heights[name]))
        heights[name] -= spare
        left += spare
    # first towards the height that each panel likes, a line each in turn; then by their parts
    growing = True
    while left > 0 and growing:
        growing = False
        for name, _, liked, _ in sorted(_COLUMN, key=lambda row: (row[0] != "now", -row[3])):  # its timeline is looked at most
            if left > 0 and name in heights and heights[name] < min(liked, needs.get(name, liked)):
                heights[name] += 1
                left -= 1
                growing = True
    parts = {name: part for name, _, _, part in _COLUMN if name in heights and part}
    left = _hand_out(heights, parts, left, needs)
    if left >= LEAST_LOG and "log" not in heights:
        heights["log"] = left  # little is known yet, and it tells what comes
    elif left:
        heights[list(parts or heights)[-1]] += left
    boxes: dict[str, Box] = {}
    y = top
    for name in _COLUMN_ORDER:
        if name in heights:
            boxes[name] = Box(0, y, width, heights[name])
            y += heights[name]
    return boxes


def _hand_out(heights: dict[str, int], parts: Mapping[str, int], left: int, needs: Mapping[str, int]) -> int:
    """Share lines out by parts, to those that have a use for them. Gives how many are left over."""
    given = dict.fromkeys(parts, 0)
    while left > 0:
        in_need = [name for name in parts if heights[name] < needs.get(name, heights[name] + 1)]
        if not in_need:
            break
        name = min(in_need, key=lambda name: given[name] / parts[name])
        given[name] += 1
        heights[name] += 1
        left -= 1
    return max(0, left)


def _wide(width: int, top: int, body: int, gpus: bool, needs: Mapping[str, int]) -> dict[str, Box]:
    """The timeline and the three tables over the whole width; below them the machine over the log, beside the roofline."""
    now = 4 if body < 34 else (5 if body < 40 else 7)
    now = min(now, needs.get("now", now))
    rest = body - now
    bottom = max(10, rest * 32 // 100)
    heights = {name: min(least, needs.get(name, least)) for name, least in _TABLES.items()}
    _hand_out(heights, {"boundaries": 3, "recompiles": 2, "regions": 3}, rest - bottom - sum(heights.values()), needs)
    bottom = rest - sum(heights.values())
    right = min(90, max(44, width * 42 // 100))
    left = width - right - COLUMN_GAP
    machine = bottom // 2 if gpus else min(7, bottom - 5)
    boxes = {"now": Box(0, top, width, now)}
    y = top + now
    for name, height in heights.items():
        boxes[name] = Box(0, y, width, height)
        y += height
    boxes["surroundings"] = Box(0, y, left, machine)
    boxes["roofline"] = Box(left + COLUMN_GAP, y, right, bottom)
    boxes["log"] = Box(0, y + machine, left, bottom - machine)
    return boxes
