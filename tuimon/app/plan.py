"""Where everything is on the screen: from a size to boxes. Pure, so every size from 1x1 up can be tested.

Three forms. Wide terminals show all panels at once in two columns; narrow ones one column with the panels that matter most, as
many as fit without cramping (the rest is a number key away); a tiny one shows a few useful lines instead of a complaint.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TINY_WIDTH, TINY_HEIGHT = 60, 15
WIDE_WIDTH, WIDE_HEIGHT = 110, 21
LOG_BODY = 30
"""Wide terminals with so many lines between the target and the keys have room for the log below the recompiles."""

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
_COLUMN_ORDER = ("now", "boundaries", "recompiles", "regions", "surroundings", "roofline", "log")


def plan(width: int, height: int, zoomed: str | None = None, ranks: bool = False, gpus: bool = False) -> Plan:
    """The boxes of a terminal of this size; `zoomed` names a panel that has it all to itself, `ranks`: they need a line;
    `gpus`: they need one beside the host's."""
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
    if width >= WIDE_WIDTH and body >= WIDE_HEIGHT - 3:
        return Plan(target, keys, _wide(width, top, body))
    return Plan(target, keys, _column(width, top, body, gpus))


def _column(width: int, top: int, body: int, gpus: bool) -> dict[str, Box]:
    heights: dict[str, int] = {}
    left = body
    for name, least, _, _ in _COLUMN:
        if name == "surroundings" and gpus and least < left:
            least += 1
        if least <= left:
            heights[name] = least
            left -= least
    # first towards the height that each panel likes, a line each in turn; then by their parts
    growing = True
    while left > 0 and growing:
        growing = False
        for name, _, liked, _ in sorted(_COLUMN, key=lambda row: (row[0] != "now", -row[3])):  # its timeline is looked at most
            if left > 0 and name in heights and heights[name] < liked:
                heights[name] += 1
                left -= 1
                growing = True
    parts = [(name, part) for name, _, _, part in _COLUMN if name in heights and part]
    _hand_out(heights, parts, left)
    boxes: dict[str, Box] = {}
    y = top
    for name in _COLUMN_ORDER:
        if name in heights:
            boxes[name] = Box(0, y, width, heights[name])
            y += heights[name]
    return boxes


def _hand_out(heights: dict[str, int], parts: list[tuple[str, int]], left: int) -> None:
    """Share lines out by parts; what rounding leaves goes to the first."""
    whole = sum(part for _, part in parts)
    given = 0
    for name, part in parts:
        more = left * part // whole
        heights[name] += more
        given += more
    if parts:
        heights[parts[0][0]] += left - given


def _wide(width: int, top: int, body: int) -> dict[str, Box]:
    """Two columns at the top and the bottom, and the two widest tables over the whole width between them."""
    right = min(80, max(44, width * 40 // 100))
    left = width - right - COLUMN_GAP
    x = left + COLUMN_GAP
    first = 4 if body < 24 else (5 if body < 32 else 7)
    rest = body - first
    second = max(5, rest * 27 // 100)
    third = max(5, rest * 30 // 100)
    fourth = rest - second - third
    y2, y3, y4 = top + first, top + first + second, top + first + second + third
    boxes = {
        "now": Box(0, top, left, first),
        "surroundings": Box(x, top, right, first),
        "boundaries": Box(0, y2, width, second),
        "regions": Box(0, y3, width, third),
        "roofline": Box(x, y4, right, fourth),
    }
    if body >= LOG_BODY:
        upper = fourth // 2
        boxes["recompiles"] = Box(0, y4, left, upper)
        boxes["log"] = Box(0, y4 + upper, left, fourth - upper)
    else:
        boxes["recompiles"] = Box(0, y4, left, fourth)
    return boxes
