"""What of a picture goes to the terminal, in which order, and when: cells that differ, and no more than the line takes at once.

The screen library sends whole lines of whole widgets, and everything anew where a screen opens or closes. Here the picture that
is wanted is compared with what was sent, cell by cell; and while an answer is waited for nothing is sent, so that what a key
changes is not behind pictures that nobody wants any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from rich.color import ColorSystem
from rich.segment import Segment

from tuimon.app.tty.cells import Looks, Row, difference, row_of, unknown
from tuimon.app.tty.flow import Flow

NUMBERS = 7
"""Questions are told apart by the column in which they ask: 2 and so many more."""

QUICK = 50_000
"""Bytes a second from which on it is not the line that keeps one waiting."""

LATE_S, STALLED_S = 0.4, 5.0
"""What waits for so long to be sent, or to be answered, is late. On a line that is not known to be slow one of the machines is
just busy, unless it waits for much longer.
"""

WHOLE_FROM = 600
"""From so many bytes on, a piece is bracketed where the terminal then shows it at once (mode 2026): 16 bytes."""

BEGIN_WHOLE, END_WHOLE = "\x1b[?2026h", "\x1b[?2026l"


class Canvas(Protocol):
    """What the painter needs of the app."""

    def picture_size(self) -> tuple[int, int]:
        """Columns and rows."""

    def rendered(self, rows: Iterable[int]) -> dict[int, list[Segment]]:
        """These rows of the screen that is on top."""

    def send(self, text: str) -> None:
        """To the terminal."""

    def call_in(self, seconds: float, what: Callable[[], None]) -> None:
        """Later."""


class Painter:
    """Keeps what the terminal shows, and brings it to what it is to show."""

    def __init__(
        self, canvas: Canvas, colours: ColorSystem | None, clock: Callable[[], float] = time.monotonic, *, asks: bool = True
    ) -> None:
        self._canvas = canvas
        self._clock = clock
        self._looks = Looks(colours)
        self._wanted: list[Row] = []
        self._sent: list[Row] = []
        self._behind: set[int] = set()
        """Rows of which the terminal does not show what is wanted."""
        self._size = (0, 0)
        self._even = self._clock()
        """When all was sent last, or nothing was to be sent."""
        self._waker = False
        self.flow = Flow()
        if not asks:
            self.flow.answers = False
        self.whole = False
        """Whether the terminal shows a piece at once that is bracketed."""
        self.bytes = 0
        """Sent since the start."""

    @property
    def behind(self) -> bool:
        """Whether there is something that was not sent yet."""
        return bool(self._behind)

    @property
    def late(self) -> bool:
        """Whether the terminal does not keep up: something waits to be sent for a while, or an answer is overdue."""
        if self.flow.answers is None:
            return False  # nothing is known of this terminal yet
        now, rate = self._clock(), self.flow.rate_bytes_s
        allowed = LATE_S if rate is not None and rate < QUICK else STALLED_S
        return now - self._even > allowed if self._behind else self.flow.is_overdue(now, allowed)

    def forget(self) -> None:
        """Nothing is known of what the terminal shows: all of it is sent again with the next picture."""
        self._size = (0, 0)
        self._behind.clear()
        self.flow.forget()

    def paint(self, rows: Iterable[int] | None = None) -> None:
        """These rows of the screen may have changed; None: any of them."""
        size = width, height = self._canvas.picture_size()
        if size != self._size:
            self.forget()
            self._size = size
            self._sent = [unknown(width, self._looks)] * height
            self._wanted = list(self._sent)
            self._behind.clear()
            rows = None
        for y, segments in self._canvas.rendered(range(height) if rows is None else rows).items():
            if not 0 <= y < height:
                continue
            row = row_of(segments, width, self._looks)
            if row == self._wanted[y]:
                continue
            if not self._behind:
                self._even = self._clock()
            self._wanted[y] = row
            if row == self._sent[y]:
                self._behind.discard(y)
            else:
                self._behind.add(y)
        self.go_on()

    def answered(self, row: int, column: int, at: float | None = None) -> bool:
        """The terminal has told where its cursor is, both counted from 0. Gives whether that was the answer to a question.

        What looks like an answer of the first row is a key: F3 with another one. Nothing is asked there.
        """
        if row == 0:
            return False
        mine = self.flow.answered(column - 1, self._clock() if at is None else at, self._numbers)
        self.go_on()
        return mine

    def go_on(self) -> None:
        """Send what is not there yet, as much as may be sent now."""
        if not self._behind:
            return
        now = self._clock()
        room = self.flow.room(now)
        if room <= 0:
            self._wake(now)
            return
        text = self._piece(room)
        size = len(text.encode())
        width, height = self._size
        number = self.flow.ask(size, now) if width > 1 and height > 1 else None
        if number is not None:
            text += f"\x1b[{height};{2 + number % self._numbers}H\x1b[6n"
        if self.whole and size >= WHOLE_FROM:
            text = f"{BEGIN_WHOLE}{text}{END_WHOLE}"
        self.bytes += size
        self._canvas.send(text)
        if self._behind:
            self._wake(now)

    @property
    def _numbers(self) -> int:
        return NUMBERS if self._size[0] >= 2 + NUMBERS else 1

    def _piece(self, room: int) -> str:
        """What brings the terminal nearer to what is wanted, of about so many bytes."""
        pen = self._looks.plain
        parts = []
        for y in sorted(self._behind, key=self._urgency):
            if room <= 0:
                break
            text, pen, there = difference(self._sent[y], self._wanted[y], pen, _to_row(y), room)
            self._sent[y] = there
            if there is self._wanted[y]:
                self._behind.discard(y)
            parts.append(text)
            room -= len(text.encode())
        if pen is not self._looks.plain:
            parts.append(pen.to(self._looks.plain))
        return "".join(parts)

    def _urgency(self, y: int) -> int:
        """The answer and how it stands first, then the keys and what they say, then from the top."""
        return -1 if y == self._size[1] - 1 and y > 1 else y - 10 if y < 2 else y

    def _wake(self, now: float) -> None:
        """Have what is left sent when an answer no longer comes."""
        until = self.flow.waits_until()
        if self._waker:
            return
        self._waker = True
        self._canvas.call_in(max(0.0, until - now) + 0.01 if until is not None else 0.0, self._woken)

    def _woken(self) -> None:
        self._waker = False
        self.go_on()


def _to_row(y: int) -> Callable[[int], str]:
    def goto(x: int) -> str:
        return f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"

    return goto
