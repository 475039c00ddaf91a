"""The command palette: the table of actions, the panels, the themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from tuimon.app.keymap import ACTIONS
from tuimon.app.keymap.replay import REPLAY
from tuimon.app.keymap.roofline import ROOFLINE
from tuimon.app.panels import PANELS
from tuimon.app.screens import points

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp


def commands(app: MonitorApp) -> Iterator[SystemCommand]:
    """All that can be done here and now."""

    def command(call: str) -> Callable[[], None]:
        def run() -> None:
            app.call_next(app.run_action, call, app.screen)

        return run

    for action in ACTIONS:
        if action.palette and action.scope != "page" and (app.several or not action.several):
            yield SystemCommand(f"{action.label} ({action.shown})", action.help, command(action.call))
    for name, on, more in (
        ("roofline", app.main.focus_id == points.PANEL, ROOFLINE),
        ("replay", app.replay.is_played, REPLAY),
    ):
        for action in more if on else ():
            yield SystemCommand(f"{name}: {action.label} ({action.shown})", action.help, command(action.call))
    for panel in PANELS:
        title = f"panel {panel.number}: {panel.title}"
        yield SystemCommand(title, "on the full screen, or back", command(f"zoom({panel.number})"))
    if not app.settings.colour_off:
        for theme_name, theme in app.settings.themes.themes.items():
            yield SystemCommand(f"theme: {theme_name}", theme.title, lambda name=theme_name: app.use_theme(name))
