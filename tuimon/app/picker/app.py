"""The picker: `tuimon` alone on a terminal shows the processes that can be attached to, and a person chooses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input

from tuimon.app.action import Scope
from tuimon.app.commands import Command, Place, listed
from tuimon.app.everywhere import Everywhere
from tuimon.app.keymap import HEADINGS, TABLES, actions
from tuimon.app.keymap.foot import Foot, foot
from tuimon.app.look.themed import choose_theme
from tuimon.app.look.themes import Loaded
from tuimon.app.picker.candidate import Candidate
from tuimon.app.picker.rows import Entry, ListView, copied, draw, entries, matching
from tuimon.app.tty import terminal
from tuimon.app.tty.background import depth, fitting_theme
from tuimon.app.widgets.keys_widget import KeysWidget
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line

if TYPE_CHECKING:
    from tuimon.app.panels.help import Subject

REFRESH_S = 2.0
"""So often it is looked again."""

MESSAGE_S = 4.0

FILTER_LABEL = " filter: "


ABOUT = (
    "The Python processes that have torch loaded, or ranks of a job that have not yet. Looking only reads: no process is "
    "stopped or touched before one is chosen. A row with `no:` cannot be attached to; when it is selected, why stands below, "
    "and what to do. What starts ranks (torchrun and the like) stands for all of them."
)

OWN = frozenset(action.call.partition("(")[0] for action in TABLES["picker"])
"""Names of the list's own actions."""

Found = TypeVar("Found", bound=Candidate)


class PickerApp(Everywhere[list[Found]], Generic[Found]):
    """The list, what is to be said of the selected row, the keys."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None  # letters are keys until a filter is opened
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(key.keys), key.call, key.label, id=key.id, show=False) for key in actions("picker")
    ]

    def __init__(
        self,
        find: Callable[[], Sequence[Found]],
        themes: Loaded,
        theme: str,
        glyphs: GlyphSet,
        message: str = "",
        watch: bool = True,
        colour_off: bool = False,
        clipboard: bool = True,
    ) -> None:
        """`watch`: look again by itself, and at whether the terminal is still there."""
        super().__init__(themes, theme)
        self.view = ListView()
        self.found: list[Entry[Found]] | None = None
        self._find = find
        self.glyphs, self.colour_off, self.may_copy = glyphs, colour_off, clipboard
        self._message = message
        self._watch = watch
        self._problem = ""
        self._looking = self._held = False
        self._signals = terminal.Signals(lambda number: self.exit(return_code=128 + number))
        self.list_lines = LineWidget(id="list")
        self.keys_line = KeysWidget()
        self.filter_label = LineWidget(id="filter-label")
        self.filter_line = Input(id="filter", placeholder="show rows that hold this text", compact=True)
        self.filter_line.cursor_blink = False

    def compose(self) -> ComposeResult:
        """The list over the keys; the filter takes the place of the keys."""
        with Container(id="board"):
            yield self.list_lines
            yield self.keys_line
            yield self.filter_label
            yield self.filter_line

    def on_mount(self) -> None:
        """The first look, on a thread; the list says so until it is over."""
        if not self.is_headless:
            self._signals.install()
        self.filter_line.display = self.filter_label.display = False
        if self._watch:
            self.set_interval(REFRESH_S, self._beat)
        if self._message:
            self.say(self._message)
        self.action_refresh_list()

    def on_unmount(self) -> None:
        """Signals as they were."""
        if not self.is_headless:
            self._signals.remove()

    def on_resize(self, event: events.Resize) -> None:
        """Another size."""
        width, height = event.size
        for widget, box in (
            (self.list_lines, (0, 0, width, max(0, height - 1))),
            (self.keys_line, (0, height - 1, width, 1)),
            (self.filter_label, (0, height - 1, len(FILTER_LABEL), 1)),
            (self.filter_line, (len(FILTER_LABEL), height - 1, max(1, width - len(FILTER_LABEL)), 1)),
        ):
            widget.styles.offset = box[:2]
            widget.styles.width, widget.styles.height = box[2:]
        self.call_after_refresh(self.paint)

    # ------------------------------------------------------------------------------------------ looking

    def _beat(self) -> None:
        if not self.is_headless and terminal.terminal_gone():
            self.exit(return_code=129)
            return
        if not self._held:
            self.action_refresh_list()

    def action_refresh_list(self) -> None:
        """Look again, on a thread: thousands of processes take their time."""
        if not self._looking:
            self._looking = True
            self.run_worker(self._look(), exit_on_error=False)

    async def _look(self) -> None:
        try:
            self.found = entries(await asyncio.to_thread(self._find))
            self._problem = ""
        except Exception as error:  # noqa: BLE001 - whatever it is: the list stays as it was, and it is tried again
            self._problem = f"looking for processes failed: {type(error).__name__}: {error}"
            if self.found is None:
                self.found = []
        finally:
            self._looking = False
        self.paint()

    # ------------------------------------------------------------------------------------------ drawing

    def paint(self) -> None:
        """Bring the screen up to date."""
        if not self.screen_stack:
            return
        width, height = self.list_lines.size
        self.list_lines.show(draw(self.found, self.view, width, height, self.glyphs, self._problem))
        self.keys_line.tell(self._keys(width), self.glyphs)
        self.filter_label.show([[(FILTER_LABEL, "key-label")]])

    def _keys(self, width: int) -> Foot:
        out: dict[str, int | None] = {} if self._rows else dict.fromkeys(("pick", "filter"))
        if not any(row.whole for row in self._rows):
            out["all"] = None
        return foot("picker", width, self.glyphs, message=self._message, ranks=out)

    def say(self, message: str) -> None:
        """A word to the person, at the bottom, for a few seconds."""
        self._message = message
        self.set_timer(MESSAGE_S, self._unsay)
        self.paint()

    def _unsay(self) -> None:
        self._message = ""
        self.paint()

    @property
    def _rows(self) -> list[Entry[Found]]:
        return matching(self.found or [], self.view.filter)

    @property
    def _selected(self) -> Entry[Found] | None:
        return next((row for row in self._rows if row.key == self.view.cursor), None)

    # ------------------------------------------------------------------------------------------ what keys do

    def action_pick(self) -> None:
        """This one."""
        row = self._selected
        if row is None:
            return
        if row.chosen:
            self.exit(row.chosen)
        else:
            self.say("it cannot be attached to; why stands above")

    def action_pick_all(self) -> None:
        """All ranks of its job."""
        row = self._selected
        whole = next((one for one in self.found or [] if row is not None and one.whole and one.key == row.group), None)
        if row is not None and not row.chosen:
            self.say("it cannot be attached to; why stands above")
        elif whole is None:
            self.say("it is no part of a job of several ranks that can be attached to")
        else:
            self.exit(whole.chosen)

    def action_leave(self) -> None:
        """None of them."""
        self.exit(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The list's keys are not those of the screens that lie over it."""
        return len(self.screen_stack) < 2 or action not in OWN

    def subject(self) -> Subject:
        """The list; or the screen that lies over it."""
        from tuimon.app.panels.help import Subject

        scope: Scope = getattr(self.screen, "SCOPE", "picker")
        return Subject(scope, HEADINGS[scope], (ABOUT,) if scope == "picker" else ())

    def commands(self) -> Iterable[Command]:
        """All that can be done."""
        return listed(self, [Place("picker", self)])

    def action_hold(self) -> None:
        """The list stands still, or no longer."""
        self._held = not self._held
        self.say("the list stands still; space: it goes on" if self._held else "the list goes on")

    def action_copy(self) -> None:
        """The selected row."""
        row = self._selected
        self.say(self.copy_text(copied(row)) if row is not None else "there is no row here yet")

    def action_move(self, step: int) -> None:
        """Another row."""
        self._go(self.view.at + step)

    def action_page(self, step: int) -> None:
        """A page on or back."""
        self._go(self.view.at + step * self.view.page)

    def action_end(self, way: int) -> None:
        """The first or the last."""
        self._go(0 if way < 0 else len(self._rows) - 1)

    def _go(self, at: int) -> None:
        rows = self._rows
        if rows:
            self.view.at = min(max(0, at), len(rows) - 1)
            self.view.cursor = rows[self.view.at].key
            self.paint()

    def action_undo(self) -> None:
        """Take the filter away."""
        if self.filter_line.display or self.view.filter:
            self._close_filter(keep=False)

    def action_filter(self) -> None:
        """Open the line that a filter is typed in."""
        self.filter_label.display = self.filter_line.display = True
        self.keys_line.display = False
        self.filter_line.value = self.view.filter
        self.screen.set_focus(self.filter_line)  # now: focus() does it later, and what is typed until then is lost

    @on(Input.Changed, "#filter")
    def narrow_while_typing(self, event: Input.Changed) -> None:
        """Each letter narrows the rows at once."""
        if self.filter_line.display:
            self.view.filter = event.value
            self.paint()

    @on(Input.Submitted, "#filter")
    def keep_filter(self) -> None:
        """Enter keeps the filter."""
        self._close_filter(keep=True)

    def _close_filter(self, keep: bool) -> None:
        self.filter_label.display = self.filter_line.display = False
        self.keys_line.display = True
        self.set_focus(None)
        if not keep:
            self.view.filter = ""
        self.paint()

    def on_click(self, event: events.Click) -> None:
        """A click selects a row; a second one on it chooses it."""
        line = event.screen_y - next((y for y, line in enumerate(self.list_lines.lines) if _is_head(line)), -1) - 1
        rows = self._rows
        at = self.view.top + line
        if 0 <= line < self.view.page and at < len(rows):
            if event.chain > 1 and rows[at].key == self.view.cursor:
                self.action_pick()
            else:
                self._go(at)


def _is_head(line: Line) -> bool:
    return any(role == "head" for _, role in line)


def pick(
    find: Callable[[], Sequence[Found]],
    *,
    theme: str | None,
    ascii: bool,  # noqa: A002
    no_color: bool,
    mouse: bool | None,
    background: str = "auto",
    clipboard: bool = True,
    problems: Sequence[str] = (),
) -> list[Found] | None:
    """Let a person choose among the processes that `find` finds (called on a thread, every two seconds).

    Gives the chosen ones, several for all ranks of a job; None where nobody was chosen. The terminal has to be able to show a
    screen (`why_no_screen`).
    """
    terminal.prepare_environment()
    os.environ.pop("NO_COLOR", None)  # as in `run`: our theme without colours does it
    fitting = fitting_theme(theme, background, "none" if no_color else depth())
    themes, chosen, found = choose_theme(fitting, no_color)
    told = "; ".join([*problems, *found])
    app = PickerApp(find, themes, chosen, terminal.choose_glyphs(ascii), told, colour_off=no_color, clipboard=clipboard)
    try:
        return app.run(mouse=mouse if mouse is not None else not terminal.over_ssh())
    except OSError:
        if not terminal.terminal_gone():
            raise
        return None
