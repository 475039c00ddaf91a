"""The main screen: the target lines, the panels, the keys. It turns keys into changes of a panel's view."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from tuimon.app.details.paged import Source
from tuimon.app.keymap import actions
from tuimon.app.keymap.foot import foot
from tuimon.app.keymap.replay import REPLAY
from tuimon.app.keymap.roofline import ROOFLINE
from tuimon.app.moves import clear_filter, select_row, select_shown
from tuimon.app.panels import findings, overview, ranks, target, timeline, tiny
from tuimon.app.panels.all import OVER, PANELS
from tuimon.app.panels.frame import fitted
from tuimon.app.panels.target import Status
from tuimon.app.plan import Plan, plan
from tuimon.app.ranks import are_one_job
from tuimon.app.scene import Scene
from tuimon.app.screens import asking, points, replay, steps
from tuimon.app.screens.asking import AskLine, put
from tuimon.app.screens.rows import RowKeys
from tuimon.app.screens.steady import Steady
from tuimon.app.widgets.keys_widget import KeysWidget
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.app.widgets.panel_widget import PanelWidget
from tuimon.draw.text import Line
from tuimon.model.about import About

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp

BINDINGS: list[BindingType] = [
    # first: a key goes to the first of its actions that is live, see `MainScreen.check_action`
    *(
        Binding(",".join(action.keys), action.call, action.label, id=action.id, show=False)
        for action in (*ROOFLINE, *REPLAY, *actions("main"))
    ),
]


TABLES_S = 0.98
"""Tables follow their numbers once a second, a little less so that a timer's jitter does not skip a beat; more often where a
person chose to draw more often."""
LOCAL_HZ = 4.0


LINES_OF_STEPS, LINES_WITHOUT = 9, 2
"""So many lines below its title the first panel has a use for, with steps to show and without."""


class MainScreen(RowKeys, points.RooflineKeys, replay.ReplayKeys, Screen[None]):
    """All panels, or one of them on the full screen."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__(id="main")
        self.target_lines = LineWidget(id="target")
        self.keys_line = KeysWidget()
        self.tiny_lines = LineWidget(id="tiny")
        self.panels = {panel.id: PanelWidget(panel) for panel in (*PANELS, *OVER)}
        self.asking = AskLine()
        self.focus_id = "boundaries"
        self.zoomed: str | None = None
        self._before: tuple[str, str | None] = (self.focus_id, None)
        """What had the keys, and the screen, before one of `OVER` came."""
        self.kept: dict[str, tuple[int, int | None, About | Source | None]] = {}
        """Page -> where it was left: its top, its selected link and where that leads."""
        self.plan = Plan(None, None)
        self._gpus = False
        self._rows: dict[str, int] = {}
        """The most rows that each table has had: it gets lines for no more."""
        self._tables_ns: int | None = None
        """When tables followed their numbers last; None: they are to."""
        self._steady = Steady()
        self._to_draw = False

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
        self._paint_all()

    def lay_out(self, width: int, height: int) -> None:
        self.plan = self._planned(width, height)
        put(self.target_lines, self.plan.target)
        put(self.keys_line, self.plan.keys)
        self.asking.put(self.plan.keys if self.asking.is_open else None)
        put(self.tiny_lines, self.plan.tiny)
        for name, widget in self.panels.items():
            put(widget, self.plan.panels.get(name))
        if self.plan.panels and self.focus_id not in self.plan.panels:
            self.focus_id = self.zoomed or next(iter(self.plan.panels))
        # boxes take effect with the next layout; draw when the widgets know their sizes
        self._paint_all()

    def _paint_all(self) -> None:
        """Draw when it has its turn, tables too: two of them with numbers of different times would contradict each other."""
        self._tables_ns = None
        self.call_after_refresh(self.monitor.paint)

    def _planned(self, width: int, height: int) -> Plan:
        return plan(width, height, self.zoomed, self.monitor.several, self._gpus, self._rows)

    def _needs(self, shown: Scene) -> bool:
        """Take down what decides on the boxes. Gives whether that has changed."""
        gpus = bool(shown.model.surroundings.gpus)
        tables = ((panel.id, panel.rows(shown)) for panel in PANELS if panel.rows is not None and panel.id != "roofline")
        steps = ("now", LINES_OF_STEPS if shown.model.steps.n else LINES_WITHOUT)
        rows = {name: max(count, self._rows.get(name, 0)) for name, count in (steps, *tables)}
        before, self._gpus, self._rows = (self._gpus, self._rows), gpus, rows
        return before != (gpus, rows)

    def sync(self, scene: Scene, status: Status, panels: Scene | None = None, clock_ns: int | None = None) -> int:
        """Bring everything visible up to date; `panels`, where given, is the frozen scene that panels go on to show.

        `clock_ns` tells when it is time for the tables (None: it is). Gives the number of lines that changed.
        """
        changed = 0
        apart_ns = TABLES_S * 1e9 * min(1.0, LOCAL_HZ / max(status.hertz, 0.1))
        due = clock_ns is None or self._tables_ns is None or clock_ns - self._tables_ns >= apart_ns
        if due and clock_ns is not None:
            self._tables_ns = clock_ns
        shown = panels or scene
        if self._needs(shown) and self.plan != self._planned(*self.size):
            self.lay_out(*self.size)
        if self.plan.target:
            width, height = self.target_lines.size
            counted = self.panels[self.zoomed].panel.rows if self.zoomed else None
            with_table = (due, counted(shown)) if counted is not None else (True, None)
            answer = self._steady.line(self.zoomed or "", shown, self.answer(shown), clock_ns, *with_table)
            lines = target.draw(scene, status, answer, width, height, shown)
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
            keys = foot(
                "roofline" if self.focus_id == points.PANEL else "main",
                self.plan.keys.width,
                scene.glyphs,
                message=status.message,
                hidden=self._hidden(),
                labels=self._labels(scene),
                several=bool(scene.ranks),
                replay=scene.replay is not None,
            )
            changed += self.keys_line.tell(keys, scene.glyphs)
        return changed

    def answer(self, scene: Scene) -> Line:
        """What the screen answers: that of the panel that has it all, else of all of them together."""
        return self.panels[self.zoomed].panel.answer(scene) if self.zoomed else overview.answer(scene)

    def _hidden(self) -> list[tuple[int | str, str]]:
        if self.zoomed is not None or self.plan.tiny:
            return []
        return [(panel.number, panel.title) for panel in PANELS if panel.id not in self.plan.panels]

    def _labels(self, scene: Scene) -> dict[str, str]:
        """What keys are called where they mean something a little different."""
        labels = {"mark": "accept"} if self.focus_id == "boundaries" else {}
        if scene.replay is not None:
            labels["play"] = "play" if scene.replay.paused or scene.replay.over else "pause"
        if scene.ranks and not are_one_job(scene.ranks):
            labels |= {"all_ranks": "all", "next_rank": "next"}
        if self.zoomed == findings.PANEL.id:
            labels.update(look="back", details="evidence")
        if self.zoomed == ranks.PANEL.id:
            labels.update(details="show this one" if "next_rank" in labels else "show this rank", all_ranks="back")
        models = [rank.model for rank in scene.ranks] or [scene.model]
        going = [model.target for model in models if model.target.ended is None]
        if (
            scene.replay is None
            and going
            and all(target.attached_ns is None and target.attaching is not None for target in going)
        ):
            labels["quit"] = "cancel"
        return labels

    def changed(self) -> None:
        """The panel that has the keys shows something else now."""
        self.focused_panel.view.touch()
        self.monitor.paint()

    # ------------------------------------------------------------------------------------------ panels

    def action_zoom(self, number: int) -> None:
        """One panel on the full screen, or back to all; the ranks, the lab."""
        if number == ranks.PANEL.number:
            self.action_all_ranks()
            return
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
        if self.is_over:
            self.leave_over()
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
        elif self.is_over:
            self.leave_over()
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
            self.leave_over()
        else:
            self._go_over(ranks.PANEL.id)
            select_row(self.focused_panel.view, ranks.begin_at(self.monitor.panel_scene()))

    @property
    def is_over(self) -> bool:
        """Whether the ranks or the findings have the screen."""
        return any(panel.id == self.zoomed for panel in OVER)

    def _go_over(self, panel: str) -> None:
        if self.asking.is_open:
            asking.close(self, keep=True)
        if not self.is_over:
            self._before = self.focus_id, self.zoomed
        self.focus_id = self.zoomed = panel
        self.lay_out(self.size.width, self.size.height)

    def leave_over(self) -> None:
        """Back to what had the keys before the ranks, or the findings."""
        self.focus_id, self.zoomed = self._before
        self.lay_out(self.size.width, self.size.height)

    def show_rank(self, key: str) -> None:
        """All ranks with that one selected ("": none), from whichever page."""
        if not self.monitor.several:
            self.monitor.say("one process is watched")
            return
        if self.zoomed != ranks.PANEL.id:
            self.action_all_ranks()
        if key.isdecimal() and int(key) < len(self.monitor.pump.watched):
            select_row(self.focused_panel.view, key)
        self.monitor.paint()

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

    @on(PanelWidget.Boxed)
    def draw_what_has_a_box(self) -> None:
        """Boxes have taken effect: all that got one together is drawn together."""
        if not self._to_draw:
            self._to_draw = True
            self.call_later(self._draw)

    def _draw(self) -> None:
        self._to_draw = False
        self.monitor.paint()

    # ------------------------------------------------------------------------------------------ for the whole app

    def action_lab(self) -> None:
        """The lab, as it was left."""
        self.monitor.open_lab()

    def action_record(self) -> None:
        """Begin to record, or stop."""
        self.monitor.record()

    def action_look(self) -> None:
        """What to look at first, or back to where one was."""
        if self.zoomed == findings.PANEL.id:
            self.leave_over()
        else:
            self._go_over(findings.PANEL.id)
            widget = self.focused_panel
            select_shown(widget.panel, self.monitor.panel_scene(), widget.view)

    def action_ceiling(self) -> None:
        """The next ceiling."""
        points.next_ceiling(self)

    def action_faster(self, step: int) -> None:
        """Draw more or less often."""
        self.monitor.change_rate(step)
