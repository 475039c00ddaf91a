"""How the monitor is to look and behave, as it was started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuimon.app.later import Figures
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
    figures: Callable[[], Figures] | None = None
    """Reads both, and is asked on a thread once the first picture is there; None: they are what stands above."""
    utc_offset_s: int | None = None
    """Seconds east of Greenwich for times of day; None: this machine's zone."""
    problems: tuple[str, ...] = ()
    """Sentences to show at the start: files that could not be used."""
    clipboard: bool = True
    """Whether `y` may write to the terminal's clipboard (OSC 52)."""
