"""Lines of text with roles, and everything that fits text into cells.

A `Line` is a list of runs, each a piece of text and the role that it plays ("number", "dim", ..). What comes from a job (names,
guards, its own output) is not trusted: it goes through `clean` before it is measured or shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

Run = tuple[str, str]
Line = list[Run]
"""Runs of (text, role), left to right."""

LONGEST = 4000
"""Characters of one untrusted string that are looked at; a longer one is cut."""

REPLACEMENT = "?"

_NO_AGREED_WIDTH = (
    (0x1160, 0x11FF),  # vowels and tails of Hangul syllables that did not compose, and their kin in other blocks
    (0xD7B0, 0xD7FF),
    (0xFFA0, 0xFFA0),
    (0x2630, 0x2637),  # trigrams, whose width changed between versions of Unicode, and their kin below
    (0x268A, 0x268F),
    (0x3164, 0x3164),
    (0x4DC0, 0x4DFF),
    (0x1D300, 0x1D37F),
    (0x1F1E6, 0x1F1FF),  # halves of flags
    (0x1F3FB, 0x1F3FF),  # skin tones
)


@lru_cache(maxsize=2048)
def clean(text: str) -> str:
    """An untrusted string, fit for a terminal cell grid: one line, no control or bidirectional characters.

    Terminals disagree about the width of combining marks and joined emoji, so marks that do not compose are dropped and
    characters that have no agreed width become "?"; every character left is one or two cells wide.
    """
    if len(text) > LONGEST:
        text = text[:LONGEST]
    if text.isascii() and text.isprintable():
        return text
    out = []
    for char in unicodedata.normalize("NFC", text):
        if char in "\t\n\r\v\f":
            out.append(" ")
            continue
        kind = unicodedata.category(char)
        if kind in ("Mn", "Me", "Cf"):
            continue
        if kind[0] == "Z":
            out.append(" ")
        elif kind[0] == "C" or kind == "Mc" or any(low <= ord(char) <= high for low, high in _NO_AGREED_WIDTH):
            out.append(REPLACEMENT)
        else:
            out.append(char)
    return "".join(out)


def one_line(text: str) -> str:
    """The same for a text of any length, of which nothing is cut."""
    return "".join(clean(text[at : at + LONGEST]) for at in range(0, len(text), LONGEST))


# what a terminal may act on, and halves of surrogate pairs, which no stream can write
_ACTED_ON = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{_ACTED_ON}]")
_IN_A_LINE = re.compile(f"[\x00-\x1f{_ACTED_ON}]")
_IN_JSON = re.compile(f"[{_ACTED_ON}]")


def harmless(text: str) -> str:
    """Lines on their way to a terminal: "?" for each character that it would act on. Line ends and tabs stay.

    The last defence, where text leaves us: what is not trusted has been through `clean` long before.
    """
    return _IN_A_TEXT.sub(REPLACEMENT, text)


def harmless_line(text: str) -> str:
    """The same for a piece of one line: "?" for line ends and tabs too. As long as before."""
    return text if text.isprintable() else _IN_A_LINE.sub(REPLACEMENT, text)


def harmless_json(text: str) -> str:
    """JSON with the characters escaped that a terminal would act on (those below the space always are). Means the same."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def ascii_only(text: str) -> str:
    """The text for a terminal without UTF-8: what is not ASCII becomes "?", as many as it took cells."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else REPLACEMENT * _char_width(char) for char in text)


def _char_width(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cells(text: str) -> int:
    """How many cells a clean string takes."""
    return len(text) if text.isascii() else _counted(text)


@lru_cache(maxsize=8192)  # pieces of charts and frames are measured again and again
def _counted(text: str) -> int:
    return sum(_char_width(char) for char in text)


def head(text: str, width: int) -> str:
    """As much of the beginning as fits in `width` cells."""
    if text.isascii():
        return text[: max(0, width)]
    used = 0
    for at, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:at]
    return text


def tail(text: str, width: int) -> str:
    """As much of the end as fits in `width` cells."""
    if width <= 0:
        return ""
    return head(text[::-1], width)[::-1]


def cut(text: str, width: int, ellipsis: str) -> str:
    """The text in at most `width` cells, its end replaced by the ellipsis where it does not fit."""
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    return head(text, width - 1) + ellipsis


def middle(text: str, width: int, ellipsis: str) -> str:
    """The text in at most `width` cells, its middle replaced by the ellipsis: both ends of a name tell it from others."""
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    front = width // 2
    return head(text, front) + ellipsis + tail(text, width - 1 - front)


def pad(text: str, width: int, right: bool = False) -> str:
    """The text filled up with spaces to `width` cells; `right` puts the text at the right."""
    room = " " * max(0, width - cells(text))
    return room + text if right else text + room


def line_cells(line: Line) -> int:
    """How many cells a line takes."""
    return sum(cells(text) for text, _ in line)


def exactly(line: Line, width: int, role: str = "text") -> Line:
    """The line in exactly `width` cells: cut at the right, or filled up."""
    out: Line = []
    left = width
    for text, run_role in line:
        if left <= 0:
            break
        size = cells(text)
        if size > left:
            text = head(text, left)
            size = cells(text)
            if size < left:  # half of a wide character would have been left
                text += " " * (left - size)
                size = left
        if text:
            out.append((text, run_role))
        left -= size
    if left > 0:
        out.append((" " * left, role))
    return out


def cut_line(line: Line, width: int, ellipsis: str) -> Line:
    """The line in at most `width` cells, its end replaced by the ellipsis where it does not fit."""
    if line_cells(line) <= width:
        return line
    if width <= 0:
        return []
    out = exactly(line, width - 1)
    return [*out, (ellipsis, out[-1][1] if out else line[0][1])]


_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # an OSC, up to its end: a title, a link
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # a CSI: colours, moves
    r"|\x1b[ -/]*[0-~]"  # any other
)


def without_escapes(text: str) -> str:
    """The text without a terminal's escape sequences, each taken out whole. What is left still has to be cleaned."""
    return _ESCAPES.sub("", text[:LONGEST])


def wrap(text: str, width: int) -> list[str]:
    """The text broken into lines of at most `width` cells, between words where there are any."""
    width = max(1, width)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        current = ""
        for word in paragraph.split(" "):
            joined = f"{current} {word}" if current else word
            if cells(joined) <= width:
                current = joined
                continue
            if current:
                lines.append(current)
            while cells(word) > width:
                piece = head(word, width) or word[:1]
                lines.append(piece)
                word = word[len(piece) :]
            current = word
        lines.append(current)
    return lines


def fill(parts: Iterable[tuple[int, Line]], width: int, gap: int = 2) -> Line:
    """Parts side by side, `gap` cells apart; where they do not all fit, those of the highest rank go, the last ones first."""
    kept = [part for part in parts if part[1]]
    while len(kept) > 1:
        if sum(line_cells(line) for _, line in kept) + gap * (len(kept) - 1) <= width:
            break
        del kept[max(range(len(kept)), key=lambda at: (kept[at][0], at))]
    out: Line = []
    for _, line in kept:
        if out:
            out.append((" " * gap, "text"))
        out.extend(line)
    return out


def two_ends(left: Line, right: Line, width: int) -> Line:
    """One line with something at each end; the right end is kept whole, the left one is cut where they meet."""
    size = line_cells(right)
    if size >= width:
        return exactly(right, width)
    return [*exactly(left, max(0, width - size - 1)), (" ", "text"), *right]
