"""The painter: what it sends makes the terminal show what is wanted, and no more is under way than the line takes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

from tuimon.app.tty.cells import Looks, difference, row_of, unknown
from tuimon.app.tty.paint import Painter

ASKED = re.compile(r"\x1b\[(\d+);(\d+)H\x1b\[6n")
Picture = list[list[Segment]]


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


class Canvas:
    """A terminal that takes all at once, or, where `slow`, what the test lets through."""

    def __init__(self, width: int, height: int, colours: ColorSystem | None = ColorSystem.EIGHT_BIT) -> None:
        self.size = width, height
        self.picture: Picture = []
        self.clock = Clock()
        self.screen = pyte.Screen(width, height)
        self.stream = pyte.Stream(self.screen)
        self.stream.feed("\x1b[?7l")
        self.sent: list[str] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.painter = Painter(self, colours, self.clock)

    def picture_size(self) -> tuple[int, int]:
        return self.size

    def rendered(self, rows: Iterable[int]) -> dict[int, list[Segment]]:
        return {y: self.picture[y] for y in rows}

    def send(self, text: str) -> None:
        self.sent.append(text)
        self.stream.feed(text)

    def call_in(self, seconds: float, what: Callable[[], None]) -> None:
        self.later.append((self.clock.s + seconds, what))

    def on(self, seconds: float) -> None:
        """Time goes by, and what is due is called."""
        until = self.clock.s + seconds
        while due := [one for one in self.later if one[0] <= until]:
            self.later.remove(due[0])
            self.clock.s = max(self.clock.s, due[0][0])
            due[0][1]()
        self.clock.s = until

    def answer(self) -> bool:
        """The answer to the last question."""
        found = ASKED.search(self.sent[-1]) if self.sent else None
        return found is not None and self.painter.answered(int(found[1]) - 1, int(found[2]) - 1)

    def settle(self, most: int = 1000) -> None:
        """Answer until nothing is left to be sent."""
        for _ in range(most):
            if not self.painter.flow.waiting and not self.painter.behind:
                return
            self.on(0.02)
            self.answer()
        raise AssertionError("it does not come to an end")

    def show(self, picture: Picture, rows: Iterable[int] | None = None) -> None:
        self.picture = picture
        self.painter.paint(rows)


def attributes(style: Style, blank: bool) -> tuple[object, ...]:
    shown = (bool(style.underline), bool(style.reverse), bool(style.strike))
    ground = style.bgcolor.number if style.bgcolor is not None else None
    if blank and not any(shown):
        return (ground, *shown)
    return (ground, *shown, style.color.number if style.color is not None else None, bool(style.bold), bool(style.italic))


def wanted(line: list[Segment], width: int) -> list[tuple[str, tuple[object, ...]]]:
    """Cell by cell: the character ("" for a wide one's second cell), and how it looks."""
    found: list[tuple[str, Style]] = []
    for char, style in [(char, style or Style()) for text, style, _ in line for char in text]:
        took = cell_len(char)
        if len(found) + took > width:
            break
        if took:
            found += [(char, style), *[("", style)] * (took - 1)]
            continue
        at = next((at for at in range(len(found) - 1, -1, -1) if found[at][0]), None)
        if at is not None:
            found[at] = unicodedata.normalize("NFC", found[at][0] + char), found[at][1]
    found += [(" ", Style())] * (width - len(found))
    return [(char, attributes(style, char[:1] == " ")) for char, style in found]


COLOURS = {"default": None, "red": 1, "green": 2, "blue": 4}


def on_screen(screen: pyte.Screen, y: int) -> list[tuple[str, tuple[object, ...]]]:
    found: list[tuple[str, tuple[object, ...]]] = []
    for x in range(screen.columns):
        cell = screen.buffer[y][x]
        if cell.data and not cell_len(cell.data):  # this emulator puts a mark into the second cell of a wide character
            found[-1] = unicodedata.normalize("NFC", found[-1][0] + cell.data), found[-1][1]
            cell = cell._replace(data="")
        shown = (cell.underscore, cell.reverse, cell.strikethrough)
        ground = COLOURS[cell.bg]
        if cell.data[:1] == " " and not any(shown):
            found.append((cell.data, (ground, *shown)))
        else:
            found.append((cell.data, (ground, *shown, COLOURS[cell.fg], cell.bold, cell.italics)))
    return found


STYLES = [
    Style(),
    Style.parse("on blue"),
    Style.parse("red on blue"),
    Style.parse("green on blue"),
    Style.parse("bold green on blue"),
    Style.parse("bold underline red"),
    Style.parse("underline red on blue"),
    Style.parse("reverse"),
    Style.parse("italic strike on red"),
]
WIDTHS, HEIGHTS = st.integers(1, 30), st.integers(1, 6)


@st.composite
def pictures(draw: st.DrawFn, width: int, height: int) -> Picture:
    alphabet = draw(st.sampled_from(["ab ─", "ab ─⣿·中́"]))
    texts = st.text(st.sampled_from(alphabet), min_size=1, max_size=12)
    run = st.tuples(texts, st.sampled_from(STYLES)).map(lambda made: Segment(*made))
    lines = []
    for _ in range(height):
        line = draw(st.lists(run, max_size=5))
        # a mark joins what stands before it: at the begin of a line there is nothing
        lines.append(line if not line or cell_len(line[0].text[0]) else [Segment("a", STYLES[0]), *line])
    return lines


@given(st.data())
@settings(max_examples=80, deadline=None, report_multiple_bugs=False)
def test_the_terminal_shows_what_is_wanted(data: st.DataObject) -> None:
    on = Canvas(data.draw(WIDTHS), data.draw(HEIGHTS))
    for _ in range(data.draw(st.integers(1, 5))):
        if data.draw(st.integers(0, 3)) == 0:
            on.size = data.draw(WIDTHS), data.draw(HEIGHTS)
            on.screen.resize(on.size[1], on.size[0])
            on.painter.forget()
        width, height = on.size
        before = on.picture if len(on.picture) == height else []
        picture = data.draw(pictures(width, height))
        if before and data.draw(st.booleans()):  # some rows stay as they are
            stays = data.draw(st.sets(st.integers(0, height - 1)))
            picture = [before[y] if y in stays else new for y, new in enumerate(picture)]
        on.show(picture)
        if data.draw(st.booleans()):
            continue  # the next one comes before the answer
        on.settle()
        for y in range(height):
            assert on_screen(on.screen, y) == wanted(picture[y], width), y
    on.settle()
    for y in range(on.size[1]):
        assert on_screen(on.screen, y) == wanted(on.picture[y], on.size[0]), y


@given(st.data())
@settings(max_examples=60, deadline=None, report_multiple_bugs=False)
def test_a_row_may_be_sent_in_parts(data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 12))
    before, after = data.draw(pictures(width, 2))
    looks = Looks(ColorSystem.EIGHT_BIT)
    screen = pyte.Screen(width, 2)
    stream = pyte.Stream(screen)
    stream.feed("\x1b[?7l")
    there, pen = unknown(width, looks), looks.plain
    for line_wanted in (before, after):
        row = row_of(line_wanted, width, looks)
        for _ in range(1000):
            if there == row:
                break
            text, pen, there = difference(there, row, pen, lambda x: f"\x1b[1;{x + 1}H", data.draw(st.integers(1, 40)))
            stream.feed(text)
        assert on_screen(screen, 0) == wanted(line_wanted, width)


def line(*runs: tuple[str, str]) -> list[Segment]:
    return [Segment(text, Style.parse(style)) for text, style in runs]


def test_only_cells_that_differ_are_sent() -> None:
    looks = Looks(ColorSystem.EIGHT_BIT)
    before = row_of(line(("12.3 it/s   median 4 ms          12 %", "white on blue")), 40, looks)
    after = row_of(line(("12.4 it/s   median 5 ms          13 %", "white on blue")), 40, looks)
    text, pen, there = difference(before, after, looks.plain, lambda x: f"<{x}>", 1000)
    assert text == "<3>\x1b[37;44m4\x1b[15C5\x1b[14C3"
    assert pen is looks.of(Style.parse("white on blue")) and there == after


def test_a_look_is_changed_by_what_differs() -> None:
    looks = Looks(ColorSystem.EIGHT_BIT)
    bold = looks.of(Style.parse("bold white on blue"))
    assert looks.of(Style.parse("white on blue")).to(bold) == "\x1b[1m"
    assert bold.to(looks.of(Style.parse("red on blue"))) == "\x1b[22;31m"
    assert bold.to(looks.plain) == "\x1b[m"
    # dim and bold are taken off together: what stays is put on again
    assert looks.of(Style.parse("bold dim")).to(looks.of(Style.parse("dim on blue"))) in ("\x1b[22;2;44m", "\x1b[0;2;44m")


def test_blanks_are_blanks_whatever_the_colour_of_the_text() -> None:
    looks = Looks(ColorSystem.EIGHT_BIT)
    before = row_of(line(("a   ", "red on blue"), ("b", "green on blue")), 5, looks)
    after = row_of(line(("a", "red on blue"), ("   b", "green on blue")), 5, looks)
    assert difference(before, after, looks.plain, str, 1000)[0] == ""
    under = row_of(line(("a", "red on blue"), ("   b", "green underline on blue")), 5, looks)
    assert difference(before, under, looks.plain, str, 1000)[0] != ""


def test_nothing_is_sent_when_nothing_changes() -> None:
    on = Canvas(20, 4)
    picture = [line(("abc", "red"))] * 4
    on.show(picture)
    on.settle()
    sent = len(on.sent)
    on.show(list(picture))
    on.show(list(picture), {1, 2})
    assert len(on.sent) == sent
    on.painter.forget()
    on.show(picture)
    assert len(on.sent) == sent + 1


def test_without_colours_none_are_sent() -> None:
    on = Canvas(20, 2, colours=None)
    on.show([line(("abc", "bold red on blue"), ("de", "#ff0000 underline")), []])
    assert on.sent[0].startswith("\x1b[1H\x1b[1mabc\x1b[22;4mde") or on.sent[0].startswith("\x1b[1H\x1b[1mabc\x1b[0;4mde")


def test_a_quick_line_that_answers_late_is_not_called_slow() -> None:
    """In a tmux on a full machine an answer takes a second or two now and then; what stands still for long is told."""
    on = Canvas(80, 24)
    on.show([line(("abc", "red"))] * 24)
    on.settle()
    for turn in range(20):
        on.show([line((f"{turn} {y}" * 9, "red")) for y in range(24)])
        on.on(2.0 if turn % 5 == 3 else 0.02)
        assert not on.painter.late, turn
        on.settle()
    on.show([line(("stalled" * 9, "red"))] * 24)
    on.on(5.5)
    assert on.painter.late
