"""Histories on a page of details: a name, the value of now, and a chart beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuimon.app.scene import Scene
from tuimon.draw.spark import chart, per_column
from tuimon.draw.text import Line, clean, cut, exactly, pad

LABEL, VALUE, MOST = 21, 14, 72
APART = 8 / 7
"""A full chart leaves a row of dots free, so that it does not grow together with the one above it."""
TWO_COLUMNS = 150
"""From so many cells on there are two charts side by side."""


_UNITS = ("_bytes_s", "_bytes", "_percent", "_mhz", "_w", "_c", "_j", "_s", "_bits")
_NAMES = {
    "activity": "SM activity (GPM)",
    "mig": "MIG parts",
    "minor": "device file",
    "pci_bus_id": "bus",
    "power_mean": "mean power",
    "process_memory": "the job's memory",
    "throttle": "clock reasons",
}
_WORDS = {
    "cpu": "CPU", "dram": "DRAM", "ecc": "ECC", "gpu": "GPU", "io": "I/O", "max": "maximum", "mig": "MIG", "nvlink": "NVLink",
    "pcie": "PCIe", "rx": "in", "sm": "SM", "tx": "out", "xid": "XID",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """One history and what stands beside it."""

    label: str
    value: str
    track: Sequence[float | None]
    top: float
    """The value that a full chart stands for."""
    note: str = ""
    """Below the label: what it means, or the reason why it is not known."""
    role: str = "number"
    scale: str = ""
    """The top in words, where it is not plain."""


def in_words(field: str) -> str:
    """The name of a field for a person: `sm_clock_max_mhz` is the SM clock's maximum."""
    for unit in _UNITS:
        if field.endswith(unit):
            field = field.removesuffix(unit)
            break
    return _NAMES.get(field) or clean(" ".join(_WORDS.get(word, word) for word in field.split("_")))


def lines(scene: Scene, tracks: Sequence[Told], width: int) -> list[Line]:
    """Two lines for each, in one or two columns."""
    columns = 2 if width >= TWO_COLUMNS else 1
    each = (width - 2 * columns) // columns
    out: list[Line] = []
    rows = -(-len(tracks) // columns)
    for row in range(rows):
        beside = [_one(scene, tracks[at], each) for at in range(row, len(tracks), rows)]
        for line in range(2):
            out.append([run for told in beside for run in [("  ", "text"), *exactly(told[line], each)]])
    return out


def span(scene: Scene, width: int, apart_s: float | None = None) -> str:
    """How many readings a chart shows at most, and how far they are apart."""
    columns = 2 if width >= TWO_COLUMNS else 1
    room = min(MOST, max(0, (width - 2 * columns) // columns - LABEL - VALUE - 9))
    apart = f" {apart_s:g} s apart" if apart_s else ""
    return f"the last {per_column(scene.glyphs) * room} readings{apart}, newest at the right"


def _one(scene: Scene, told: Told, width: int) -> list[Line]:
    room = min(MOST, max(0, width - LABEL - VALUE - 9))
    ellipsis = scene.glyphs.ellipsis
    known = any(value is not None for value in told.track)
    # it grows to the right until there is no more room: half empty, it would stand far from its scale
    room = min(room, max(4, -(-len(told.track) // per_column(scene.glyphs))))
    drawn = chart(list(told.track), room, 2, told.top * APART, scene.glyphs) if known and room >= 4 else ["", ""]
    scale = pad(told.scale if drawn[0] else "", 7, right=True)
    first: Line = [(pad(told.label, LABEL), "label"), (pad(told.value, VALUE, right=True), told.role), (f" {scale} ", "axis")]
    note_room = LABEL + VALUE - 2 if drawn[0] else max(0, width - 2)  # a reason has the room of the chart that is not there
    note = cut(clean(told.note), note_room, ellipsis)
    second: Line = [("  " + pad(note, note_room), "note"), (f" {'0' if drawn[0] else '':>7} ", "axis")]
    return [[*first, (drawn[0], "spark")], [*second, (drawn[1], "spark")]]
