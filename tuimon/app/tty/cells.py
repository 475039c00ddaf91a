"""Rows of a picture as a terminal has them: cell by cell, what of them differs, and the bytes that make one into the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

_ATTRIBUTES = {
    "bold": ("1", "22"),
    "dim": ("2", "22"),
    "italic": ("3", "23"),
    "underline": ("4", "24"),
    "blink": ("5", "25"),
    "reverse": ("7", "27"),
    "strike": ("9", "29"),
}
"""How each is put on and taken off. Bold and dim are taken off together."""

_SHOWS_ON_BLANKS = frozenset(("4", "7", "9"))
UNKNOWN = "\0"
"""A cell of which it is not known what the terminal shows there."""

SHORT_GAP = 4
"""Bytes that cost no more than to step over them."""


class Look:
    """How a cell looks, in the terminal's own codes. There is one object for each look: compare with `is`."""

    __slots__ = ("_ways", "attributes", "blank", "foreground", "ground")

    def __init__(self, attributes: frozenset[str], foreground: str, ground: str) -> None:
        self.attributes, self.foreground, self.ground = attributes, foreground, ground
        self.blank: Look = self
        """How a blank of this look looks: the colour of the text, and how thick it is, do not show on it."""
        self._ways: dict[Look, str] = {}

    def to(self, other: Look) -> str:
        """The shortest sequence that goes from this look to the other."""
        if other is self:
            return ""
        way = self._ways.get(other)
        if way is None:
            codes = min((self._changed(other), other._whole()), key=lambda codes: len(";".join(codes)))
            way = self._ways[other] = f"\x1b[{';'.join(codes)}m"
        return way

    def _whole(self) -> list[str]:
        colours = [code for code in (self.foreground, self.ground) if code not in ("39", "49")]
        return ["0", *sorted(self.attributes), *colours] if self.attributes or colours else [""]

    def _changed(self, other: Look) -> list[str]:
        off = {out for on, out in _ATTRIBUTES.values() if on in self.attributes - other.attributes}
        left = {on for on, out in _ATTRIBUTES.values() if on in self.attributes and out not in off}
        codes = [*sorted(off), *sorted(other.attributes - left)]
        codes += [other.foreground] if other.foreground != self.foreground else []
        codes += [other.ground] if other.ground != self.ground else []
        return codes


class Looks:
    """The looks of one terminal, which takes so many colours (None: none at all)."""

    def __init__(self, colours: ColorSystem | None) -> None:
        self._colours = colours
        self._of_styles: dict[Style | None, Look] = {}
        self._known: dict[tuple[frozenset[str], str, str], Look] = {}
        self.plain = self._look(frozenset(), "39", "49")

    def of(self, style: Style | None) -> Look:
        """The look of a style."""
        look = self._of_styles.get(style)
        if look is None:
            look = self._of_styles[style] = self._find(style or Style.null())
        return look

    def _find(self, style: Style) -> Look:
        attributes = frozenset(on for name, (on, _) in _ATTRIBUTES.items() if getattr(style, name))
        return self._look(attributes, self._code(style, True), self._code(style, False))

    def _code(self, style: Style, foreground: bool) -> str:
        colour = style.color if foreground else style.bgcolor
        if colour is None or self._colours is None:
            return "39" if foreground else "49"
        return ";".join(colour.downgrade(self._colours).get_ansi_codes(foreground))

    def _look(self, attributes: frozenset[str], foreground: str, ground: str) -> Look:
        key = attributes, foreground, ground
        look = self._known.get(key)
        if look is None:
            look = self._known[key] = Look(*key)
            if not attributes & _SHOWS_ON_BLANKS:
                look.blank = self._look(frozenset(), "39", ground)
        return look


class Row:
    """A row, cell by cell."""

    __slots__ = ("even", "looks", "text")

    def __init__(self, text: Sequence[str], looks: list[Look], even: bool) -> None:
        self.text = text
        """The character of each cell, with what joins it; "" for the second cell of a wide one. A string where `even`."""
        self.looks = looks
        self.even = even
        """Whether each character has a cell of its own."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.text == other.text and self.looks == other.looks

    __hash__ = None  # type: ignore[assignment]


def unknown(width: int, looks: Looks) -> Row:
    """A row of which nothing is known."""
    return Row(UNKNOWN * width, [looks.plain] * width, True)


def row_of(segments: Iterable[Segment], width: int, looks: Looks) -> Row:
    """The row that these segments make, cut or filled to so many cells."""
    text = ""
    found: list[Look] = []
    for run, style, control in segments:
        if control:
            continue
        look = looks.of(style)
        text += run
        if look.blank is not look and " " in run:
            blank = look.blank
            found += [blank if char == " " else look for char in run]
        else:
            found += [look] * len(run)
    if _all_alone(text):
        missing = width - len(text)
        if missing > 0:
            return Row(text + " " * missing, found + [looks.plain] * missing, True)
        return Row(text[:width], found[:width], True)
    return _uneven(text, found, width, looks)


def _uneven(text: str, looks_of: list[Look], width: int, looks: Looks) -> Row:
    chars: list[str] = []
    found: list[Look] = []
    for char, look in zip(text, looks_of, strict=True):
        took = cell_len(char)
        if took == 0:
            at = next((at for at in range(len(chars) - 1, -1, -1) if chars[at]), None)
            if at is not None:
                chars[at] += char
            continue
        if len(chars) + took > width:
            break
        chars += [char, *[""] * (took - 1)]
        found += [look] * took
    missing = width - len(chars)
    return Row(chars + [" "] * missing, found + [looks.plain] * missing, False)


_alone = {chr(code) for code in range(32, 127)}


def _all_alone(text: str) -> bool:
    """Whether each character of the text takes one cell, whatever stands beside it."""
    new = set(text) - _alone
    if not new:
        return True
    fit = {char for char in new if _takes_one(char)}
    _alone.update(fit)
    return len(fit) == len(new)


@lru_cache(maxsize=4096)
def _takes_one(char: str) -> bool:
    return cell_len(char) == 1


def difference(old: Row, new: Row, pen: Look, goto: Callable[[int], str], room: int) -> tuple[str, Look, Row]:
    """What makes the old row into the new one: the text to send, the pen after it, and the row that is there then.

    `pen` is the look that the terminal writes with, `goto` gives what takes the cursor to a cell of the row. Of more than about
    `room` bytes only the first part is given. A row with wide or joined characters is written from its first difference to its
    end: terminals do not agree on what becomes of half a character.
    """
    out: list[str] = []
    if not (old.even and new.even):
        first = _first_difference(old, new)
        if first is not None:
            out.append(goto(first))
            pen, _, _ = _write(out, new, first, len(new.looks), pen, sys.maxsize)
        return "".join(out), pen, new
    end = 0
    for begin, until in _spans(old, new):
        if not out:
            out.append(goto(begin))
        elif _is_short(new, end, begin, pen):
            begin = end
        else:
            out.append(f"\x1b[{begin - end if begin - end > 1 else ''}C")
        room -= len(out[-1])
        pen, end, room = _write(out, new, begin, until, pen, room)
        if end < until or room <= 0:
            text = "".join((*new.text[:end], *old.text[end:]))
            return "".join(out), pen, Row(text, new.looks[:end] + old.looks[end:], True)
    return "".join(out), pen, new


def _spans(old: Row, new: Row) -> list[tuple[int, int]]:
    """Where two rows of one width differ."""
    if old.looks == new.looks:
        apart = [at for at, (before, after) in enumerate(zip(old.text, new.text, strict=True)) if before != after]
    else:
        both = enumerate(zip(old.text, new.text, old.looks, new.looks, strict=True))
        apart = [at for at, (before, after, look, other) in both if before != after or look is not other]
    spans: list[tuple[int, int]] = []
    begin = end = -1
    for at in apart:
        if at != end:
            if end > 0:
                spans.append((begin, end))
            begin = at
        end = at + 1
    if end > 0:
        spans.append((begin, end))
    return spans


def _is_short(row: Row, begin: int, end: int, pen: Look) -> bool:
    """Whether cells that are right already are written again for less than a step over them."""
    return (
        end - begin <= SHORT_GAP
        and all(
            look is pen or (look is pen.blank and char == " ")
            for char, look in zip(row.text[begin:end], row.looks[begin:end], strict=True)
        )
        and sum(len(char.encode()) for char in row.text[begin:end]) <= SHORT_GAP
    )


def _first_difference(old: Row, new: Row) -> int | None:
    """The cell from which two rows differ. In both a character begins there: of a wide one that is in both, no half differs."""
    for at, (before, after, look, other) in enumerate(zip(old.text, new.text, old.looks, new.looks, strict=True)):
        if before != after or look is not other:
            return at
    return None


def _write(out: list[str], row: Row, begin: int, end: int, pen: Look, room: int) -> tuple[Look, int, int]:
    """Write these cells where the cursor is, as long as there is room: at least one. Gives the pen after it, the cell behind
    the last one that was written, and the room that is left.
    """
    text, looks = row.text, row.looks
    at = begin
    while at < end:
        look = looks[at]
        until = at + 1
        while until < end and looks[until] is look:
            until += 1
        run = "".join(text[at:until])
        if look is not pen and not (look is pen.blank and not run.strip(" ")):
            out.append(pen.to(look))
            room -= len(out[-1])
            pen = look
        size = len(run.encode())
        if size > room:
            until = at + max(1, room * (until - at) // size)
            run = "".join(text[at:until])
            out.append(run)
            return pen, until, room - len(run.encode())
        out.append(run)
        room -= size
        at = until
    return pen, end, room
