"""A page of text over the panels. It scrolls, stays live while it is open, and its links lead on to evidence and to source."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from tuimon.app.action import Scope
from tuimon.app.details import narrowed
from tuimon.app.details.opening import open_about, open_source
from tuimon.app.details.paged import Link, Paged, Source, paged
from tuimon.app.keymap import actions
from tuimon.app.keymap.foot import foot
from tuimon.app.panels.frame import fitted
from tuimon.app.panels.target import Status
from tuimon.app.plan import Box
from tuimon.app.scene import Scene
from tuimon.app.screens.asking import AskLine
from tuimon.app.widgets.keys_widget import KeysWidget
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.text import Line, clean, cut, line_cells
from tuimon.model.about import About

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp

BINDINGS: list[BindingType] = [
    Binding(",".join(action.keys), action.call, action.label, id=f"page-{action.id}", show=False) for action in actions("page")
]

TOP = 2
"""Lines of the title."""
DEEPEST = 24
"""So many pages lie over each other; who goes on in a circle is told."""
MOST_KEPT = 256
LEAST_TITLE = 14
"""Cells of a title below which it is not said where on the page one is."""


class PageScreen(Screen[None]):
    """A title, text that scrolls, and the keys."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""
    SCOPE: ClassVar[Scope] = "page"
    """Which actions its footer tells."""

    def __init__(self, title: str, build: Callable[[Scene, int], list[Line] | Paged]) -> None:
        """`build` gives the page from a scene and a width in cells; a page of lines alone has no links but those among them."""
        super().__init__()
        self.page_title = title
        self._build = build
        self.body = LineWidget(id="page")
        self.keys_line = KeysWidget()
        self.asking = AskLine()
        self.top = 0
        self.selected: int | None = None
        """The link that is selected, as its number on the page."""
        self._selected_to: About | Source | None = None
        self.finding = ""
        """What the lines that are shown must hold."""
        self.page = Paged([])
        """As it was drawn last."""
        self._head = 0
        self._last = 0
        self._placed: int | None = None
        """Where the line that the page is about brought it: until somebody scrolls, the line stays in the middle."""

    @property
    def monitor(self) -> MonitorApp:
        """The app, by its own type."""
        return cast("MonitorApp", self.app)

    def compose(self) -> ComposeResult:
        """The text and the keys; what is typed takes the place of the keys."""
        with Container(id="board"):
            yield self.body
            yield self.keys_line
            yield self.asking.label
            yield self.asking.line

    def on_mount(self) -> None:
        """Nothing is asked yet; the page opens where it was left."""
        self.top, self.selected, self._selected_to = self.monitor.main.kept.get(self.page_title, (0, None, None))
        self.asking.put(None)
        self._lay_out(self.app.size.width, self.app.size.height)

    def on_resize(self, event: events.Resize) -> None:
        """Text is broken anew."""
        self._lay_out(event.size.width, event.size.height)

    def on_screen_resume(self) -> None:
        """A page over it was closed."""
        self.call_after_refresh(self.monitor.paint)

    def _lay_out(self, width: int, height: int) -> None:
        for widget, box in ((self.body, Box(0, 0, width, max(0, height - 1))), (self.keys_line, Box(0, height - 1, width, 1))):
            widget.styles.width, widget.styles.height = box.width, box.height
            widget.styles.offset = (box.x, box.y)
        if self.asking.is_open:
            self.asking.put(Box(0, height - 1, width, 1))
        self.call_after_refresh(self.monitor.paint)

    # ------------------------------------------------------------------------------------------ drawing

    def sync(self, scene: Scene, status: Status, panels: Scene | None = None, clock_ns: int | None = None) -> int:
        """Bring the page up to date. Gives the number of lines that changed."""
        width, height = self.body.size
        glyphs = scene.glyphs
        built = self._build(panels or scene, max(10, width))
        self.page = page = narrowed.narrowed(paged(built) if isinstance(built, list) else built, self.finding)
        room = max(0, height - TOP)
        head = narrowed.head_of(page, room, width, glyphs)
        self._head = page.pinned
        room -= len(head)
        self._find_selected()
        lines = narrowed.with_signs(page, self.selected, width, glyphs)[page.pinned :]
        self._last = max(0, len(lines) - room)
        here = page.here is not None and height > 0 and self._placed in (None, self.top)
        if here and page.here is not None:
            self.top = page.here - page.pinned - room // 2
        self.top = min(max(0, self.top), self._last)
        if here:
            self._placed = self.top
        body = [self._title(scene, status, len(lines), room, width), [(glyphs.horizontal * width, "rule")], *head]
        if self.finding and not lines:
            body.append([(" ", "text"), ("no line holds it; esc shows all", "note")])
        changed = self.body.show(fitted([*body, *lines[self.top : self.top + room]], width, height, glyphs))
        if not self.keys_line.display:
            return changed
        over = scene.replay is not None or scene.model.target.how == "file"  # no window is opened in it
        scope: Scope = "page" if self.SCOPE == "window" and over else self.SCOPE
        labels = {"down": "scroll"}
        ranks: dict[str, int | None] = {"down": 4}
        link = self._link()
        if link is None:
            ranks.update(follow=None, link=None)
        else:
            labels["follow"] = name_of(link.to)
        keys = foot(scope, self.keys_line.size.width, glyphs, message=status.message, ranks=ranks, labels=labels)
        return changed + self.keys_line.tell(keys, glyphs)

    def _title(self, scene: Scene, status: Status, count: int, room: int, width: int) -> Line:
        glyphs = scene.glyphs
        where = f"{self.top + 1}-{min(count, self.top + room)} of {count}" if self._last else ""
        if self.finding:
            where = f"{clean(self.finding)!r}: {where or f'{count} found'}"
        behind: Line = []
        if scene.ranks:
            behind += [("  ", "text"), (clean(scene.ranks[scene.rank].label), "strong")]
        if status.frozen is not None:
            behind += [("  ", "text"), (" FROZEN ", "frozen")]
        room = width - 1 - line_cells(behind)
        if where and (self.finding or room - len(where) - 2 >= LEAST_TITLE):
            behind = [("  ", "text"), (where, "note"), *behind]
            room -= len(where) + 2
        return [(" ", "text"), (cut(clean(self.page_title), max(1, room), glyphs.ellipsis), "title-focus"), *behind]

    # ------------------------------------------------------------------------------------------ links

    def _find_selected(self) -> None:
        """The selected link where it is now: those before it come and go while the page is open."""
        at, links = self.selected, self.page.links
        if at is not None and self._selected_to is not None and (at >= len(links) or links[at].to != self._selected_to):
            alike = [number for number, link in enumerate(links) if link.to == self._selected_to]
            at = min(alike, key=lambda number: abs(number - (self.selected or 0)), default=None)
        self.selected = at if at is not None and at < len(links) else None
        self._selected_to = links[self.selected].to if self.selected is not None else None

    def _link(self) -> Link | None:
        """The link that enter follows: the selected one, else the first."""
        if not self.page.links:
            return None
        return self.page.links[self.selected if self.selected is not None else 0]

    def action_follow(self) -> None:
        """Where the selected line leads, or the first that leads on."""
        if not self.page.lines:  # the key came with the one that opened the page, which is not drawn yet
            self.monitor.paint()
        link = self._link()
        if link is None:
            self.monitor.say("this is the last page; esc goes back")
            return
        follow(self.monitor, link.to)

    def action_link(self, step: int) -> None:
        """Select the next line that leads on, or the one before; round and round."""
        links = self.page.links
        if not links:
            self.monitor.say("nothing here leads on; esc goes back")
            return
        at = (0 if step > 0 else len(links) - 1) if self.selected is None else (self.selected + step) % len(links)
        self.selected, self._selected_to = at, links[at].to
        line = links[at].line - self._head
        room = max(1, self.body.size.height - TOP - self._head)
        if line >= 0 and not self.top <= line < self.top + room:
            self.top = line - room // 3
        self.monitor.paint()

    def action_copy(self) -> None:
        """What the selected line leads to, where that is a line of source; else what the page is about, in a sentence."""
        link = self.page.links[self.selected] if self.selected is not None else None
        if link is not None and isinstance(link.to, Source):
            what = open_source(self.monitor.panel_scene(), link.to)[1](self.monitor.panel_scene(), 200)
            self.monitor.copy(what.copied)
            return
        first = next((text for line in self.page.lines if (text := "".join(part for part, _ in line).strip())), "")
        self.monitor.copy(self.page.copied or clean(f"{self.page_title}: {first}"))

    # ------------------------------------------------------------------------------------------ finding

    def action_find(self) -> None:
        """Open the line that a text to find is typed in."""
        self.asking.put(Box(0, self.size.height - 1, self.size.width, 1))
        self.keys_line.display = False
        self.asking.line.value = self.finding
        self.set_focus(self.asking.line)  # now: focus() does it later, and what is typed until then is lost

    @on(Input.Changed, "#filter")
    def narrow_while_typing(self, event: Input.Changed) -> None:
        """A letter was typed."""
        if self.asking.is_open:
            self.finding = event.value
            self._show_from(0)

    @on(Input.Submitted, "#filter")
    def keep_what_was_typed(self) -> None:
        """Enter."""
        self._close()

    def _close(self) -> None:
        self.asking.put(None)
        self.set_focus(None)
        self.keys_line.display = True
        self.monitor.paint()

    # ------------------------------------------------------------------------------------------ moving

    def action_leave(self) -> None:
        """Out of the line that is typed in, then of what was to be found, then back to where one was."""
        if self.asking.is_open or self.finding:
            self.finding = ""
            self._close()
            return
        kept = self.monitor.main.kept
        if self.page.here is None:
            kept.pop(self.page_title, None)
            kept[self.page_title] = (self.top, self.selected, self._selected_to)
            if len(kept) > MOST_KEPT:
                del kept[next(iter(kept))]
        self.dismiss()

    def _show_from(self, top: int) -> None:
        self.top = min(max(0, top), self._last)
        self.monitor.paint()

    def action_move(self, step: int) -> None:
        """A line on or back."""
        self._show_from(self.top + step)

    def action_page(self, step: int) -> None:
        """A page on or back."""
        self._show_from(self.top + step * max(1, self.body.size.height - TOP - self._head - 1))

    def action_end(self, way: int) -> None:
        """The top or the end."""
        self._show_from(0 if way < 0 else self._last)

    # ------------------------------------------------------------------------------------------ the mouse

    def on_click(self, event: events.Click) -> None:
        """A click on a line that leads on follows it."""
        shown = self.body.size.height
        line = event.screen_y - TOP
        if self.asking.is_open or not 0 <= line < shown - TOP:
            return
        head = len(narrowed.head_of(self.page, shown - TOP, self.body.size.width, self.monitor.settings.glyphs))
        at = line if line < head else line - head + self.top + self._head
        number = next((number for number, link in enumerate(self.page.links) if link.line == at), None)
        if number is not None:
            self.selected, self._selected_to = number, self.page.links[number].to
            self.action_follow()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls."""
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls."""
        self.action_move(-3)


def follow(monitor: MonitorApp, to: About | Source) -> None:
    """Show that: a page of its own, or the screen that it is on."""
    if len(monitor.screen_stack) > DEEPEST:
        monitor.say("this goes on in a circle; esc goes back")
        return
    scene = monitor.panel_scene()
    if isinstance(to, Source):
        monitor.push_screen(PageScreen(*open_source(scene, to)))
    elif to.kind == "step" and to.key:
        monitor.open_step(int(to.key))
    elif to.kind == "rank":
        if monitor.several:
            leave_pages(monitor)
            monitor.main.call_after_refresh(monitor.main.show_rank, to.key)  # once it has the screen again
        else:
            monitor.main.show_rank(to.key)
    else:
        page = open_about(scene, to)
        if page is None:
            monitor.say("it is no longer known")
            return
        monitor.push_screen(PageScreen(*page))


def leave_pages(monitor: MonitorApp) -> None:
    """Back to the panels, from however deep."""
    while len(monitor.screen_stack) > 1 and isinstance(monitor.screen, PageScreen):
        monitor.pop_screen()


NAMES = {"gpu": "the GPU", "settings": "settings", "rank": "the ranks"}


def name_of(to: About | Source) -> str:
    """What a link leads to, in a word or two."""
    if isinstance(to, Source):
        return f"{cut(os.path.basename(to.file) or to.file, 28, '~')}:{to.line}"
    return NAMES.get(to.kind) or (f"step {to.key}" if to.kind == "step" and to.key else f"the {to.kind}")
