"""The lab on the screen: turns keys into steps of the lab's state, and draws what comes of it. Nothing moves by itself but a
trace that plays, two stations a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from tuimon.app.action import Scope
from tuimon.app.keymap import actions
from tuimon.app.lab.keys import lab_foot
from tuimon.app.lab.live import measured, region_key, take
from tuimon.app.lab.view import Picture, draw
from tuimon.app.panels.all import PANELS
from tuimon.app.panels.target import Status
from tuimon.app.scene import Scene
from tuimon.app.widgets.keys_widget import KeysWidget
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.glyphs import GlyphSet
from tuimon.lab import state
from tuimon.lab import walk as walking
from tuimon.lab.numbers import LONGEST
from tuimon.lab.state import Lab
from tuimon.lab.walk import Walk, WalkError, load_walk
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Point

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp
    from tuimon.app.everywhere import Everywhere

BINDINGS: list[BindingType] = [
    Binding(",".join(key.keys), key.call, key.label, id=f"lab-{key.id}", show=False) for key in actions("lab")
]

PLAY_S = 0.5
"""Seconds between two stations of a trace that plays: a line over ssh carries that with ease."""

LIVE_S = 1.0
"""What is measured is looked at again so often."""

ASKS: dict[str, tuple[str, str, Callable[[Lab, str], Lab]]] = {
    "intensity": (" I, in FLOP/byte: ", "8", state.set_intensity),
    "bandwidth": (" B, in GB/s: ", "80", state.set_bandwidth),
    "peak": (" peak, in GFLOP/s: ", "1000", state.set_peak),
    "prediction": (" the ceiling, in GFLOP/s: ", "640", state.predict),
}
"""What can be typed: the words before it, an example, what is done with it."""


@dataclass
class LabSession:
    """The lab as it was left: it outlives its screen."""

    lab: Lab = field(default_factory=Lab)
    walk: Walk | None = None
    point: Point | None = None
    """What the hypothesis was taken from, as it was then."""


class LabScreen(Screen[None]):
    """The question, the roof, the trace, and the line that numbers are typed in."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""
    SCOPE: ClassVar[Scope] = "lab"

    def __init__(
        self,
        session: LabSession,
        glyphs: GlyphSet,
        point: Point | None = None,
        ceiling: Ceiling | None = None,
        *,
        walk: Path | None = None,
        live: bool = True,
    ) -> None:
        """`point` and `ceiling`: take their numbers as a hypothesis. `walk`: the file that `w` walks through; None: ours.

        `live`: over the monitor; else alone.
        """
        super().__init__(id="lab")
        self.session = session
        self.glyphs = glyphs
        self.live = live
        self._walk_file = walk
        self._asked = "intensity"
        self._then_play = False
        self._timer: Timer | None = None
        self._measured: tuple[str, ...] = ()
        self._looked_ns: int | None = None
        self._message = ""
        self.body = LineWidget(id="lab-body")
        self.keys_line = KeysWidget()
        self.label = LineWidget(id="filter-label")
        self.line = Input(id="filter", compact=True, max_length=LONGEST + 1)
        self.line.cursor_blink = False
        if point is not None and ceiling is not None:
            taken = take(point, ceiling)
            session.walk = None
            if isinstance(taken, str):
                session.lab = state.told(session.lab, taken)
            else:
                session.lab, session.point = state.take(session.lab, taken), point

    def compose(self) -> ComposeResult:
        """The lab over the keys; what is typed takes the place of the keys."""
        with Container(id="board"):
            yield self.body
            yield self.keys_line
            yield self.label
            yield self.line

    def on_mount(self) -> None:
        """Nothing is asked yet."""
        self.line.display = self.label.display = False

    def on_unmount(self) -> None:
        """What plays, stops."""
        self.session.lab = _stopped(self.session.lab)

    def on_resize(self, event: events.Resize) -> None:
        """Another size."""
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int, height: int) -> None:
        label = min(len(ASKS[self._asked][0]), max(0, width - 8))
        _put(self.body, 0, 0, width, max(0, height - 1))
        _put(self.keys_line, 0, height - 1, width, 1)
        _put(self.label, 0, height - 1, label, 1)
        _put(self.line, label, height - 1, max(1, width - label), 1)
        self.label.show([[(ASKS[self._asked][0], "key-label")]])
        self.call_after_refresh(self.paint)

    # ------------------------------------------------------------------------------------------ drawing

    def sync(self, scene: Scene, status: Status, clock_ns: int) -> None:
        """For the monitor: what is measured now, and its word to the person. Draws only where that has changed."""
        before = self._measured, self._message
        taken = self.session.lab.taken
        if taken is None:
            self._measured = ()
        elif self._looked_ns is None or clock_ns - self._looked_ns >= LIVE_S * 1e9:
            self._looked_ns = clock_ns
            self._measured = measured(scene.model, taken, self.session.point)
        self._message = status.message
        if before != (self._measured, self._message):
            self.paint()

    def paint(self) -> None:
        """Bring the screen up to date."""
        width, height = self.body.size
        session = self.session
        picture = Picture(session.lab, session.walk, self._measured, self.live)
        self.body.show(draw(picture, width, height, self.glyphs))
        keys = lab_foot(
            width,
            self.glyphs,
            self._message,
            walking=session.walk is not None,
            taken=session.lab.taken is not None and self.live,
            playing=session.lab.playing,
            live=self.live,
        )
        self.keys_line.tell(keys, self.glyphs)

    def _become(self, lab: Lab, walk: Walk | None = None) -> None:
        """The next state, drawn; the timer runs exactly while something plays."""
        self.session.lab = lab
        if walk is not None:
            self.session.walk = walk
        if lab.playing and self._timer is None:
            self._timer = self.set_interval(PLAY_S, self.tick)
        elif not lab.playing and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.paint()

    def tick(self) -> None:
        """The next station of a trace that plays."""
        self._become(state.tick(self.session.lab))

    # ------------------------------------------------------------------------------------------ typing

    def action_ask(self, what: str) -> None:
        """Open the line that a number is typed in."""
        self._asked, self._then_play = what, False
        self.session.lab = _stopped(self.session.lab)
        self._become(self.session.lab)
        self.keys_line.display = False
        self.label.display = self.line.display = True
        self.line.placeholder = f"for instance {ASKS[what][1]}; enter takes it, esc does not"
        self.line.value = ""
        self._lay_out(self.size.width, self.size.height)
        self.set_focus(self.line)  # now: focus() does it later, and what is typed until then is lost

    @on(Input.Submitted, "#filter")
    def take_number(self) -> None:
        """Enter takes it; what cannot be used leaves everything as it was, with a word on why."""
        text = self.line.value
        self._close()
        lab = ASKS[self._asked][2](self.session.lab, text)
        self._become(state.play(lab) if self._then_play and lab.prediction is not None else lab)

    def _close(self) -> None:
        self.label.display = self.line.display = False
        self.keys_line.display = True
        self.set_focus(None)
        self.paint()

    # ------------------------------------------------------------------------------------------ what keys do

    def action_setting(self, number: int) -> None:
        """One of the two settings; its ceiling is asked for at once, and traced to with the answer."""
        self._let_go()
        self._become(state.setting(self.session.lab, number))
        self.action_ask("prediction")
        self._then_play = True

    def action_reset(self) -> None:
        """No question."""
        self._let_go()
        self._become(state.reset(self.session.lab))

    def _let_go(self) -> None:
        self.session.point = None
        self._measured = ()

    def action_play(self) -> None:
        """Trace, or stop."""
        self._become(state.play(self.session.lab))

    def action_step(self) -> None:
        """One station further."""
        self._become(state.step(_stopped(self.session.lab)))

    def action_reveal(self) -> None:
        """The ceiling."""
        self._become(state.reveal(self.session.lab))

    def action_walk(self) -> None:
        """Into the walk, or out of it."""
        if self.session.walk is not None:
            self.session.walk = None
            self._become(state.reset(self.session.lab))
        else:
            self.begin_walk()
            self._become(self.session.lab)

    def begin_walk(self) -> None:
        """To the first stop of the walk; where there is none, a word on why."""
        session = self.session
        try:
            session.walk, session.lab = walking.begin(load_walk(self._walk_file), session.lab)
        except WalkError as error:
            session.lab = state.told(session.lab, f"there is no walk: {error}")

    def tell(self, message: str) -> None:
        """A word to the person."""
        self._become(state.told(self.session.lab, message))

    def action_on(self) -> None:
        """The next stop."""
        if self.session.walk is not None:
            walk, lab = walking.go_on(self.session.walk, self.session.lab)
            self._become(lab, walk)

    def action_skip(self, way: int) -> None:
        """The next stop in any case, or the one before."""
        if self.session.walk is not None:
            walk, lab = (walking.skip if way > 0 else walking.back)(self.session.walk, self.session.lab)
            self._become(lab, walk)

    def action_again(self) -> None:
        """What was taken, as it was."""
        taken = self.session.lab.taken
        if taken is None:
            where = (
                "select a point of the roofline (6) and press h there" if self.live else "that needs the monitor: tuimon attach"
            )
            self.tell(f"nothing was taken from a live region; {where}")
            return
        self._become(state.take(self.session.lab, taken))

    def action_measured(self) -> None:
        """Out of the lab, to the measured numbers of what the hypothesis was taken from."""
        taken = self.session.lab.taken
        if taken is None or not self.live:
            self.tell("the hypothesis was not taken from a live region: nothing is measured of it")
            return
        app = cast("MonitorApp", self.app)
        region = region_key(taken.key)
        wanted = "regions" if region is not None else "roofline"
        self.dismiss()
        app.open_details(next(panel for panel in PANELS if panel.id == wanted), region or taken.key)

    def action_copy(self) -> None:
        """The formula, to the clipboard."""
        app = cast("Everywhere[Any]", self.app)
        self.tell(app.copy_text(state.formula(self.session.lab, known=self.session.lab.revealed)))

    def action_leave(self) -> None:
        """Out of the lab."""
        if self.live:
            self.dismiss()
        else:
            self.app.exit()

    def action_undo(self) -> None:
        """Out of the line that is typed in, or back to the monitor; the lab alone is not left by this."""
        if self.line.display:
            self._close()
        elif self.live:
            self.action_leave()
        else:
            self.tell("q leaves the lab")


def _stopped(lab: Lab) -> Lab:
    return state.play(lab) if lab.playing else lab


def _put(widget: Widget, x: int, y: int, width: int, height: int) -> None:
    widget.styles.offset = (x, y)
    widget.styles.width, widget.styles.height = width, height
