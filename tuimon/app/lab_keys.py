"""The lab's own keys: what makes its bindings, its last line and its help page."""

from __future__ import annotations

from tuimon.app.details.page import heading, prose
from tuimon.app.keymap.lab import LAB
from tuimon.app.panels.frame import PanelLines
from tuimon.app.panels.help import entry
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line, clean, cut, fill

ABOUT = (
    "The roof is min(peak, I x B): I operations for each byte that crosses a memory boundary, B bytes a second across it. Set "
    "I and B, predict the ceiling, then play or step: the trace goes along the roof, with the formula and its numbers at each "
    "station, up to I. All of it is hypothetical: another shape in the chart, and never among measured points. A ceiling is no "
    "achieved rate, and a higher one is a potential traffic benefit, not time saved: that only the program's measured, "
    "synchronised time can tell.",
    "Numbers are typed as 8, 0.25, 1/12, 1,000 or 8e3. B is in GB/s and rates are in GFLOP/s unless a prefix (80M, 3.35T) or "
    "the unit itself (80 GB/s, 0.64 TFLOP/s) says otherwise.",
)


def help_lines(width: int, glyphs: GlyphSet) -> PanelLines:
    """The help page."""
    lines: PanelLines = [[(" the roofline lab", "title-focus")]]
    for part in ABOUT:
        lines += prose(part, width)
    for group in dict.fromkeys(key.group for key in LAB):
        lines += heading(f"keys: {group}")
        for key in LAB:
            if key.group == group:
                lines += entry(key.shown, key.help, width)
    lines += heading("marks in the chart")
    lines += entry(glyphs.point_declared, "a station of the trace: hypothetical", width)
    lines += entry("x", "what was predicted at I, where it is not right", width)
    lines += entry("I", "the chosen intensity", width)
    lines += entry(glyphs.ridge, "the ridge, peak / B: left of it the bandwidth is the limit, right of it the peak", width)
    return lines


def footer(
    width: int, glyphs: GlyphSet, message: str, *, on_help: bool, walking: bool, taken: bool, playing: bool, live: bool
) -> PanelLines:
    """The last line: the keys that matter now, or a word from the monitor."""
    if message:
        return [[(" ", "text"), (cut(clean(message), max(1, width - 2), glyphs.ellipsis), "warn")]]
    if on_help:
        return [[(" ", "text"), ("q", "key"), (" back", "key-label"), ("  j k", "key"), (" scroll", "key-label")]]
    labels = {
        "walk": "leave walk" if walking else "walk",
        "play": "stop" if playing else "play",
        "leave": "back" if live else "quit",
    }
    ranks = {**({"on": 0} if walking else {}), **({"measured": 0} if taken else {})}
    parts: list[tuple[int, Line]] = [(1, [("i b k", "key"), (" set", "key-label")])]
    for key in LAB:
        rank = ranks.get(key.id, key.footer)
        if rank is not None:
            parts.append((rank, [(key.shown, "key"), (f" {labels.get(key.id, key.label)}", "key-label")]))
    return [[(" ", "text"), *fill(parts, width - 2)]]
