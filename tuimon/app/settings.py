"""How the monitor is to look and behave, as it was started."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.app.look.themes import Loaded
from tuimon.app.plane import Compute
from tuimon.draw.glyphs import GlyphSet
from tuimon.roofline.ceilings import Ceiling


@dataclass(frozen=True, slots=True)
class Settings:
    """How the monitor is to look and behave."""

    glyphs: GlyphSet
    themes: Loaded
    theme: str
    hertz: float
    colour_off: bool = False
    ceilings: tuple[Ceiling, ...] = ()
    roofline: Compute | None = None
    """What makes a roofline of a model; None: the panel shows the ceilings alone."""
    utc_offset_s: int | None = None
    """Seconds east of Greenwich for times of day; None: this machine's zone."""
    problems: tuple[str, ...] = ()
    """Sentences to show at the start: files that could not be used."""
    clipboard: bool = True
    """Whether `y` may write to the terminal's clipboard (OSC 52)."""
