"""The lab's last line and its help, made of the one table of keys."""

from __future__ import annotations

from tuimon.app.details.page import heading
from tuimon.app.keymap.foot import Foot, foot
from tuimon.app.panels.frame import PanelLines
from tuimon.app.panels.help import Subject, entry
from tuimon.draw.glyphs import GlyphSet

ABOUT = (
    "The roof is min(peak, I x B): I operations for each byte that crosses a memory boundary, B bytes a second across it. Set "
    "I and B, predict the ceiling, then play or step: the trace goes along the roof, with the formula and its numbers at each "
    "station, up to I. All of it is hypothetical: another shape in the chart, and never among measured points. A ceiling is no "
    "achieved rate, and a higher one is a potential traffic benefit, not time saved: that only the program's measured, "
    "synchronised time can tell.",
    "Numbers are typed as 8, 0.25, 1/12, 1,000 or 8e3. B is in GB/s and rates are in GFLOP/s unless a prefix (80M, 3.35T) or "
    "the unit itself (80 GB/s, 0.64 TFLOP/s) says otherwise.",
)


def lab_subject() -> Subject:
    """What the help of the lab is about."""
    return Subject("lab", "the roofline lab", ABOUT, more=_marks)


def _marks(width: int, glyphs: GlyphSet) -> PanelLines:
    lines = heading("marks in the chart")
    lines += entry(glyphs.point_declared, "a station of the trace: hypothetical", width)
    lines += entry("x", "what was predicted at I, where it is not right", width)
    lines += entry("I", "the chosen intensity", width)
    lines += entry(glyphs.ridge, "the ridge, peak / B: left of it the bandwidth is the limit, right of it the peak", width)
    return lines


def lab_foot(width: int, glyphs: GlyphSet, message: str, *, walking: bool, taken: bool, playing: bool, live: bool) -> Foot:
    """The last line: the keys that matter now, or a word from the monitor."""
    labels = {
        "intensity": "set",
        "walk": "leave walk" if walking else "walk",
        "play": "stop" if playing else "play",
        "leave": "back" if live else "quit",
    }
    ranks: dict[str, int | None] = {**({"on": 0} if walking else {}), **({"measured": 0} if taken else {})}
    return foot("lab", width, glyphs, message=message, labels=labels, ranks=ranks)
