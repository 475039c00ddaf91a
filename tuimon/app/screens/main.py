"""The main screen: the target lines, the panels, the keys. It turns keys into changes of a panel's view."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from tuimon.app.keymap import actions
from tuimon.app.keymap.main import PANEL_KEYS
from tuimon.app.keymap.replay import REPLAY
from tuimon.app.keymap.roofline import ROOFLINE
from tuimon.app.moves import clear_filter, select_row
from tuimon.app.panels import PANELS, ranks, target, timeline, tiny
from tuimon.app.panels import keys as keys_line
from tuimon.app.panels.frame import fitted
from tuimon.app.panels.target import Status
from tuimon.app.plan import Plan, plan
from tuimon.app.ranks import are_one_job
from tuimon.app.scene import Scene
from tuimon.app.screens import asking, points, replay, steps
from tuimon.app.screens.asking import AskLine, put
from tuimon.app.screens.rows import RowKeys
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.app.widgets.panel_widget import PanelWidget

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp

BINDINGS: list[BindingType] = [
    # first: a key goes to the first of its actions that is live, see `MainScreen.check_action`
    *(
        Binding(",".join(action.keys), action.call, action.label, id=action.id, show=False)
        for action in (*ROOFLINE, *REPLAY, *actions("main"))
    ),
    *(Binding(key, f"zoom({key})", f"panel {key}", id=f"panel-{key}", show=False) for key in PANEL_KEYS),
]


TABLES_S = 0.98
"""Tables follow their numbers once a second, a little less so that a timer's jitter does not skip a beat; more often where a
person chose to draw more often."""
LOCAL_HZ = 4.0


class MainScreen(RowKeys, points.RooflineKeys, replay.ReplayKeys, Screen[None]):
    """All panels, or one of them on the full screen."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__(id="main")
        self.target_lines = LineWidget(id="target")
        self.keys_line = LineWidget(id="keys")
        self.tiny_lines = LineWidget(id="tiny")
        self.panels = {panel.id: PanelWidget(panel) for panel in (*PANELS, ranks.PANEL)}
        self.asking = AskLine()
        self.focus_id = "boundaries"
        self.zoomed: str | None = None
        self._before_ranks: tuple[str, str | None] = (self.focus_id, None)
        self.plan = Plan(None, None)
        self._gpus = False
        self._tables_ns = 0

    @property
    def monitor(self) -> MonitorApp:
        """The app, by its own type."""
        return cast("MonitorApp", self.app)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the roofline, and of a replay, are live while there is one: otherwise they are those of the main screen."""
        if action in replay.ACTIONS:
            return self.monitor.replay.is_played
        return self.focus_id == points.PANEL or action not in points.ACTIONS

    @property
    def focused_panel(self) -> PanelWidget:
        """The panel that has the keys."""
        return self.panels[self.focus_id]

    def compose(self) -> ComposeResult:
        """Everything that may be on the screen; `lay_out` says what is and where."""
        with Container(id="board"):
            yield self.target_lines
            yield from self.panels.values()
            yield self.tiny_lines
            yield self.keys_line
            yield self.asking.label
            yield self.asking.line

    def on_mount(self) -> None:
        """Nothing is shown before it has a place."""
        self.asking.put(None)
        self.lay_out(self.app.size.width, self.app.size.height)

    def on_resize(self, event: events.Resize) -> None:
        """Another size: other boxes."""
        self.lay_out(event.size.width, event.size.height)

    def on_screen_resume(self) -> None:
        """A page was closed: what has changed meanwhile is drawn now, and not with the next beat."""
        self.call_after_refresh(self.monitor.paint)

    def lay_out(self, width: int, height: int) -> None:
        self.plan = plan(width, height, self.zoomed, self.monitor.several, self._gpus)
        put(self.target_lines, self.plan.target)
        put(self.keys_line, self.plan.keys)
        self.asking.put(self.plan.keys if self.asking.is_open else None)
        put(self.tiny_lines, self.plan.tiny)
        for name, widget in self.panels.items():
            put(widget, self.plan.panels.get(name))
        if self.plan.panels and self.focus_id not in self.plan.panels:
            self.focus_id = self.zoomed or next(iter(self.plan.panels))
        # boxes take effect with the next layout; draw when the widgets know their sizes
        self.call_after_refresh(self.monitor.paint)

    def sync(self, scene: Scene, status: Status, panels: Scene | None = None, clock_ns: int | None = None) -> int:
        """Bring everything visible up to date; `panels`, where given, is the frozen scene that panels go on to show.

        `clock_ns` tells when it is time for the tables (None: it is). Gives the number of lines that changed.
        """
        changed = 0
        due = clock_ns is None or clock_ns - self._tables_ns >= TABLES_S * 1e9 * min(1.0, LOCAL_HZ / max(status.hertz, 0.1))
        if due and clock_ns is not None:
            self._tables_ns = clock_ns
        shown = panels or scene
        if self._gpus != bool(shown.model.surroundings.gpus):  # the first one needs a line of its own
            self._gpus = not self._gpus
            self.lay_out(self.size.width, self.size.height)
        if self.plan.target:
            width, height = self.target_lines.size
            lines = target.draw(scene, status, width, height, shown)
            changed += self.target_lines.show(fitted(lines, width, height, scene.glyphs))
        if self.plan.tiny:
            width, height = self.tiny_lines.size
            lines = tiny.draw(shown, width, height, status, scene)
            changed += self.tiny_lines.show(fitted(lines, width, height, scene.glyphs))
        for name in self.plan.panels:
            widget = self.panels[name]
            widget.focused_panel = name == self.focus_id
            changed += widget.sync(shown, due)
        if self.plan.keys and self.keys_line.display:
            width, height = self.keys_line.size
            lines = keys_line.draw(
                "roofline" if self.focus_id == points.PANEL else "main",
                status.message,
                self._hidden(),
                width,
                scene.glyphs,
                bool(scene.ranks),
                self._labels(scene),
                scene.replay is not None,
            )
            changed += self.keys_line.show(fitted(lines, width, height, scene.glyphs))
        return changed

    def _hidden(self) -> list[tuple[int | str, str]]:
        if self.zoomed is not None or self.plan.tiny:
            return []
        return [(panel.number, panel.title) for panel in PANELS if panel.id not in self.plan.panels]

    def _labels(self, scene: Scene) -> dict[str, str]:
        """What keys are called where they mean something a little different."""
        labels = {}
        if scene.replay is not None:
            labels["play"] = "play" if scene.replay.paused or scene.replay.over else "pause"
        if scene.ranks and not are_one_job(scene.ranks):
            labels |= {"all_ranks": "all", "next_rank": "next"}
        if self.zoomed == ranks.PANEL.id:
            labels.update(details="show this one" if "next_rank" in labels else "show this rank", all_ranks="back")
        models = [rank.model for rank in scene.ranks] or [scene.model]
        going = [model.target for model in models if model.target.ended is None]
        if going and all(target.attached_ns is None and target.attaching is not None for target in going):
            labels["quit"] = "cancel"
        return labels

    def changed(self) -> None:
        """The panel that has the keys shows something else now."""
        self.focused_panel.view.touch()
        self.monitor.paint()

    # ------------------------------------------------------------------------------------------ panels

    def action_zoom(self, number: int) -> None:
        """One panel on the full screen, or back to all."""
        chosen = next((panel.id for panel in PANELS if panel.number == number), None)
        if chosen is None:
            return
        self.zoomed = None if self.zoomed == chosen else chosen
        self.focus_id = chosen
        self.lay_out(self.size.width, self.size.height)

    def action_next_panel(self, step: int) -> None:
        """The keys go to another panel; on the full screen, that one takes it."""
        if self.asking.is_open:
            asking.close(self, keep=True)
        names = [panel.id for panel in PANELS if self.zoomed or panel.id in self.plan.panels]
        if not names:
            return
        at = names.index(self.focus_id) if self.focus_id in names else -step
        self.focus_id = names[(at + step) % len(names)]
        if self.zoomed:
            self.zoomed = self.focus_id
            self.lay_out(self.size.width, self.size.height)
        else:
            self.monitor.paint()

    def action_back(self) -> None:
        """Out of the filter line, then of the filter, then of the full screen or the table of all ranks."""
        if self.asking.is_open:
            asking.close(self, keep=False)
        elif self.focused_panel.view.filter:
            clear_filter(self.focused_panel.view)
            self.changed()
        elif self.zoomed == ranks.PANEL.id:
            self.leave_ranks()
        elif self.focus_id == steps.PANEL and self.focused_panel.view.cursor is not None:
            self.select_step(None)
        elif self.zoomed is not None:
            self.zoomed = None
            self.lay_out(self.size.width, self.size.height)

    # ------------------------------------------------------------------------------------------ ranks

    def action_all_ranks(self) -> None:
        """All ranks in one table, or back to where one was."""
        if not self.monitor.several:
            self.monitor.say("one process is watched")
        elif self.zoomed == ranks.PANEL.id:
            self.leave_ranks()
        else:
            if self.asking.is_open:
                asking.close(self, keep=True)
            self._before_ranks = self.focus_id, self.zoomed
            self.focus_id = self.zoomed = ranks.PANEL.id
            select_row(self.focused_panel.view, ranks.begin_at(self.monitor.panel_scene()))
            self.lay_out(self.size.width, self.size.height)

    def leave_ranks(self) -> None:
        self.focus_id, self.zoomed = self._before_ranks
        self.lay_out(self.size.width, self.size.height)

    def action_next_rank(self, step: int) -> None:
        """The panels show another rank."""
        self.monitor.next_rank(step)

    def another_rank(self) -> None:
        """Another rank is shown. Ranks run the same program, so sort, filter and selection stay; log lines are its own."""
        timeline.carried(self.monitor.panel_scene().model, self.panels[steps.PANEL].view)
        view = self.panels["log"].view
        view.cursor, view.follow = None, True
        view.touch()
        if self.zoomed == ranks.PANEL.id:
            select_row(self.focused_panel.view, str(self.monitor.pump.selected))

    # ------------------------------------------------------------------------------------------ what is typed, the mouse

    @on(Input.Changed, "#filter")
    def narrow_while_typing(self, event: Input.Changed) -> None:
        """A letter was typed."""
        asking.typed(self, event.value)

    @on(Input.Submitted, "#filter")
    def keep_what_was_typed(self) -> None:
        """Enter."""
        asking.entered(self)

    @on(PanelWidget.Pointed)
    def follow_the_mouse(self, event: PanelWidget.Pointed) -> None:
        """A click gives the panel the keys and selects the row; the wheel moves the selection."""
        self.pointed(event)

    # ------------------------------------------------------------------------------------------ for the whole app

    def action_lab(self) -> None:
        """The lab, as it was left."""
        self.monitor.open_lab()

    def action_record(self) -> None:
        """Begin to record, or stop."""
        self.monitor.record()

    def action_look(self) -> None:
        """What to look at first."""
        self.monitor.open_look()

    def action_freeze(self) -> None:
        """Stop the screen, or let it catch up."""
        self.monitor.freeze()

    def action_ceiling(self) -> None:
        """The next ceiling."""
        points.next_ceiling(self)

    def action_faster(self, step: int) -> None:
        """Draw more or less often."""
        self.monitor.change_rate(step)
