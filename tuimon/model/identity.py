"""Who is who: frames, compile ids, generations, user lines.

A source line is no key and neither is a compile id: two boundaries can share a line, and Dynamo's ids start over at
`torch._dynamo.reset()`. A frame is therefore known by its generation and Dynamo's frame number.
"""

from __future__ import annotations

import os
import re

from tuimon.model.parts import FrameKey

MOST_IDS = 100_000
"""Ids of one generation that are remembered. In a job with more of them a reset may go unnoticed."""


class Generations:
    """Counts the resets of Dynamo from the ids that come by.

    Dynamo never gives out a compile id twice between two resets, so an id that comes again opens a new generation.
    """

    def __init__(self) -> None:
        self.current = 0
        self._given: set[str] = set()

    def enter(self, compile_id: str) -> int:
        """A frame's compilation begins under this id; gives the generation that it belongs to."""
        if compile_id in self._given:
            self.current += 1
            self._given.clear()
        self.note(compile_id)
        return self.current

    def note(self, compile_id: str) -> None:
        """This id is in use in the current generation (seen in Dynamo's tables at attach)."""
        if len(self._given) < MOST_IDS:
            self._given.add(compile_id)


def frame_id(compile_id: str) -> int | None:
    """The frame number in a compile id ("2/1" -> 2, "!0/2/1" -> 2); None if it is no compile id."""
    parts = compile_id.split("/")
    try:
        return int(parts[-2])
    except (IndexError, ValueError):
        return None


def plain_function(function: str) -> str:
    """The user's function behind a resume function's name ("torch_dynamo_resume_in_f_at_7" -> "f"); others as they are."""
    match = _RESUME.match(function)
    return match["function"] if match else function


def entry_number(compile_id: str) -> int | None:
    """The number of the compilation within its frame ("2/1" -> 1); None if it is no compile id."""
    try:
        return int(compile_id.split("/")[-1])
    except ValueError:
        return None


def frame_key(generation: int, compile_id: str) -> FrameKey | None:
    """The key of the frame that a compile id belongs to."""
    number = frame_id(compile_id)
    return None if number is None else f"{generation}:{number}"


_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_\d+$")
_LIBRARY = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", f"{os.sep}torch{os.sep}", "<frozen ")


def is_library(file: str) -> bool:
    """Whether a file belongs to torch, to an installed package or to Python's own library rather than to the user."""
    return any(part in file for part in _LIBRARY) or _in_standard_library(file)


def _in_standard_library(file: str) -> bool:
    head, _, tail = file.partition(f"{os.sep}lib{os.sep}python3.")
    return bool(tail) and bool(head) and tail.split(os.sep, 1)[0].isdigit()


def user_line(stack: tuple[tuple[str, int, str], ...], file: str, line: int) -> tuple[str, int]:
    """The user's own line behind a place: the place itself, or the innermost line of the stack outside any library.

    `stack` is outermost first, (file, line, function). Where the whole stack is library code, the place is all there is.
    """
    if not is_library(file):
        return file, line
    for frame_file, frame_line, _ in reversed(stack):
        if not is_library(frame_file):
            return frame_file, frame_line
    return file, line
