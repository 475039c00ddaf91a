"""Who is who: frames, compile ids, generations, user lines.

A source line is no key and neither is a compile id: two boundaries can share a line, and Dynamo's ids start over at
`torch._dynamo.reset()`. A frame is therefore known by its generation and Dynamo's frame number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from tuimon.model.parts import FrameKey

MOST_IDS = 100_000
"""Ids of one generation that are remembered. In a job with more of them a reset may go unnoticed."""

MOST_OWNERS = 3
"""Modules that a frame's name tells; the others are counted."""


class Generations:
    """Counts the resets of Dynamo from the ids that come by.

    Dynamo never gives out a compile id twice between two resets, nor one frame number to two code objects, so an id that
    comes again, or comes for other code, opens a new generation.
    """

    def __init__(self) -> None:
        self.current = 0
        self._given: set[str] = set()
        self._codes: dict[int, int] = {}

    def enter(self, compile_id: str, code: int | None = None) -> int:
        """A frame's compilation begins under this id, of this code object; gives the generation that it belongs to."""
        number = frame_id(compile_id)
        other = code is not None and number is not None and self._codes.get(number, code) != code
        if compile_id in self._given or other:
            self.current += 1
            self._given.clear()
            self._codes.clear()
        self.note(compile_id, code)
        return self.current

    def note(self, compile_id: str, code: int | None = None) -> None:
        """This id is in use in the current generation (seen in Dynamo's tables at attach)."""
        if len(self._given) < MOST_IDS:
            self._given.add(compile_id)
        number = frame_id(compile_id)
        if code is not None and number is not None and len(self._codes) < MOST_IDS:
            self._codes.setdefault(number, code)


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


def display_name(function: str, qualname: str, file: str, owners: Sequence[str]) -> str | None:
    """What a person would call a frame: by the modules that it was compiled for, or by the class that its code stands in.

    "Sequential(Linear, Tanh)" for a library's wrapper around a module, "SGD.step (wrapper)" for one around a function,
    "Block.forward" for a method; None where the function's own name says as much. `owners` are type names, or, for what wraps
    a function, that function's name with its class; `qualname` is "" where it is not known.
    """
    if not owners:
        owner, _, last = qualname.rpartition(".")
        if not owner or last != function or "<" in qualname or is_wrapper(file):
            return None
        match = _RESUME.match(function)
        return f"{owner}.{match['function']} from line {match['line']} on" if match else qualname
    names = [_with_owner(function, file, owner) for owner in owners[:MOST_OWNERS]]
    more = len(owners) - len(names)
    return " | ".join(names) + (f" | {more} more" if more > 0 else "")


def _with_owner(function: str, file: str, owner: str) -> str:
    if "(" in owner or is_wrapper(file):
        return owner
    match = _RESUME.match(function)
    if "." in owner:
        return f"{owner} ({match['function']} from line {match['line']} on)" if match else f"{owner} ({function})"
    return f"{owner}.{match['function']} from line {match['line']} on" if match else f"{owner}.{function}"


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


_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$")
_WRAPPERS = (f"{os.sep}torch{os.sep}_dynamo{os.sep}", f"{os.sep}torch{os.sep}nn{os.sep}modules{os.sep}module.py")
_LIBRARY = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", f"{os.sep}torch{os.sep}", "<frozen ")


def is_library(file: str) -> bool:
    """Whether a file belongs to torch, to an installed package or to Python's own library rather than to the user."""
    return any(part in file for part in _LIBRARY) or _in_standard_library(file)


def is_wrapper(file: str) -> bool:
    """Whether code there calls something on behalf of somebody else, so that its own name says nothing."""
    return any(part in file for part in _WRAPPERS)


def same_tail(one: str, other: str) -> bool:
    """Whether one of two paths ends in the other, part by part."""
    parts, others = _parts(one), _parts(other)
    shared = min(len(parts), len(others))
    return shared > 0 and parts[-shared:] == others[-shared:]


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


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
