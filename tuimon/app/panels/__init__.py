"""The panels: one pure function each, from a scene and a view to lines of (text, role). No screen library in here."""

from tuimon.app.panels import boundaries, log, now, recompiles, regions, roofline, surroundings
from tuimon.app.scene import Panel

PANELS: tuple[Panel, ...] = (
    now.PANEL,
    boundaries.PANEL,
    recompiles.PANEL,
    regions.PANEL,
    surroundings.PANEL,
    roofline.PANEL,
    log.PANEL,
)
"""In the order of their number keys."""

BY_ID: dict[str, Panel] = {panel.id: panel for panel in PANELS}
"""The panels by name."""
