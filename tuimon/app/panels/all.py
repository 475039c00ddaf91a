"""All panels."""

from tuimon.app.panels import boundaries, findings, log, now, ranks, recompiles, regions, roofline, surroundings
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

OVER: tuple[Panel, ...] = (ranks.PANEL, findings.PANEL)
"""Those that are not among the others: they take the full screen, and give it back."""

BY_ID: dict[str, Panel] = {panel.id: panel for panel in (*PANELS, *OVER)}
"""All of them by name."""
