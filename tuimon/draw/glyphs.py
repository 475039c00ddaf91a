"""The characters that drawings are made of: three sets, from the finest to the one that every terminal can show.

Not every font has braille, and not every terminal speaks UTF-8, so no drawing names a character itself: it takes a
`GlyphSet` and stays the same code for all of them. Every glyph is one cell wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GlyphName = Literal["braille", "block", "ascii"]

# Unicode numbers the eight dots of a braille cell down the columns and the bottom row last (the standard grew from six dots
# to eight); here a dot is (row * columns + column), so the order is translated once.
_BRAILLE_BITS = (0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80)


def _braille_cells() -> str:
    """All 256 braille characters, indexed by a mask whose bit row * 2 + column is a dot."""
    cells = []
    for mask in range(256):
        code = 0x2800
        for bit, value in enumerate(_BRAILLE_BITS):
            if mask >> bit & 1:
                code |= value
        cells.append(chr(code))
    # the empty one as a space: some fonts draw the blank braille cell as eight small rings
    cells[0] = " "
    return "".join(cells)


@dataclass(frozen=True, slots=True)
class GlyphSet:
    """One way of drawing. `cells[mask]` is the character whose dots are the bits row * columns + column of the mask."""

    name: GlyphName
    columns: int
    """Dots of a cell, across."""
    rows: int
    """Dots of a cell, down."""
    cells: str
    """2 ** (columns * rows) characters."""
    spark: str
    """Levels of a sparkline, lowest first; every level is visible, so that a small value differs from none."""
    bar: str
    """Parts of a horizontal bar's last cell, smallest first; the last one is a full cell."""
    bar_empty: str
    horizontal: str
    vertical: str
    corner: str
    """Bottom left."""
    tick_left: str
    tick_bottom: str
    grid_horizontal: str
    grid_vertical: str
    dash: str
    up: str
    down: str
    left: str
    right: str
    ridge: str
    ellipsis: str
    bullet: str
    separator: str
    """Stands between two facts on one line, with a space on each side."""
    mark_on: str
    mark_off: str
    roof_slope: str | None
    """Where a cell has one dot, a line needs its slope in the character; None where the dots show it."""
    roof_flat: str | None
    roof_flat_dim: str | None
    point_measured: str
    point_counted: str
    point_modelled: str
    point_upper: str
    """Intensity is an upper bound: the true point is here or to the left."""
    point_lower: str
    point_unknown: str
    """The direction of the error is not known."""
    point_declared: str
    trail: str
    """Where a point was before."""


BRAILLE = GlyphSet(
    name="braille",
    columns=2,
    rows=4,
    cells=_braille_cells(),
    spark="▁▂▃▄▅▆▇█",
    bar="▏▎▍▌▋▊▉█",
    bar_empty="░",
    horizontal="─",
    vertical="│",
    corner="└",
    tick_left="┤",
    tick_bottom="┴",
    grid_horizontal="·",
    grid_vertical="┊",
    dash="╌",
    up="▴",
    down="▾",
    left="◂",
    right="▸",
    ridge="▲",
    ellipsis="…",
    bullet="•",
    separator="·",
    mark_on="●",
    mark_off="○",
    roof_slope=None,
    roof_flat=None,
    roof_flat_dim=None,
    point_measured="●",
    point_counted="◉",
    point_modelled="◨",
    point_upper="◁",
    point_lower="▷",
    point_unknown="◌",
    point_declared="◇",
    trail="∘",
)
"""Eight dots a cell."""

BLOCK = GlyphSet(
    name="block",
    columns=2,
    rows=2,
    cells=" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█",
    spark=BRAILLE.spark,
    bar=BRAILLE.bar,
    bar_empty=BRAILLE.bar_empty,
    horizontal="─",
    vertical="│",
    corner="└",
    tick_left="┤",
    tick_bottom="┴",
    grid_horizontal="·",
    grid_vertical="┊",
    dash="╌",
    up="▴",
    down="▾",
    left="◂",
    right="▸",
    ridge="▲",
    ellipsis="…",
    bullet="•",
    separator="·",
    mark_on="●",
    mark_off="○",
    roof_slope=None,
    roof_flat=None,
    roof_flat_dim=None,
    point_measured=BRAILLE.point_measured,
    point_counted=BRAILLE.point_counted,
    point_modelled=BRAILLE.point_modelled,
    point_upper=BRAILLE.point_upper,
    point_lower=BRAILLE.point_lower,
    point_unknown=BRAILLE.point_unknown,
    point_declared=BRAILLE.point_declared,
    trail=BRAILLE.trail,
)
"""Four dots a cell, for fonts without braille."""

ASCII = GlyphSet(
    name="ascii",
    columns=1,
    rows=1,
    cells=" *",
    spark="_.-=+*#@",
    bar="#",
    bar_empty=".",
    horizontal="-",
    vertical="|",
    corner="+",
    tick_left="+",
    tick_bottom="+",
    grid_horizontal=".",
    grid_vertical=":",
    dash="-",
    up="^",
    down="v",
    left="<",
    right=">",
    ridge="^",
    ellipsis="~",
    bullet="*",
    separator="|",
    mark_on="*",
    mark_off="o",
    roof_slope="/",
    roof_flat="=",
    roof_flat_dim="-",
    point_measured="@",
    point_counted="O",
    point_modelled="#",
    point_upper="{",
    point_lower="}",
    point_unknown="%",
    point_declared="?",
    trail=",",
)
"""One dot a cell, for terminals without UTF-8."""

GLYPH_SETS: dict[str, GlyphSet] = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCK, ASCII)}


def glyphs_for(encoding: str | None) -> GlyphSet:
    """The finest set that an output of this encoding can carry (None: not known, so the safest)."""
    for glyphs in (BRAILLE, BLOCK):
        try:
            glyphs.cells.encode(encoding or "ascii")
            (glyphs.spark + glyphs.point_unknown + glyphs.ridge).encode(encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            continue
        return glyphs
    return ASCII
