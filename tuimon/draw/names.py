"""Names of places and frames, shortened by what they mean: function before file, file before line, folders last of all."""

from __future__ import annotations

import os
import re

from tuimon.draw.text import cells, clean, cut, middle

SHORTEST_FILE = 8
"""Below this a file name that was shortened says nothing any more."""


def place(file: str, line: int | None, width: int, ellipsis: str) -> str:
    """A line of the user's program, `model.py:41`, in at most `width` cells. The line number is kept to the last."""
    name = clean(os.path.basename(file) or file or "?")
    number = f":{line}" if line else ""
    return _keep_end(name, number, width, ellipsis)


_RESUMED = "torch_dynamo_resume_in_"
_FROM_LINE = re.compile(r"^(.+) from line \d+ on$")


def function_name(function: str) -> str:
    """A function as its author knows it: Dynamo's own name for the rest of one after a graph break becomes `f resumed`, and so
    does `f from line 7 on`, as the line stands behind it."""
    named = _FROM_LINE.match(function)
    if named:
        return f"{clean(named[1])} resumed"
    resumed = False
    while function.startswith(_RESUMED):
        inner, _, line = function[len(_RESUMED) :].rpartition("_at_")
        if not inner or not line.isdigit():
            break
        function, resumed = inner, True
    name = clean(function) or "?"
    return f"{name} resumed" if resumed else name


def frame_name(function: str, file: str, line: int | None, width: int, ellipsis: str) -> str:
    """A frame, `forward model.py:12`, in at most `width` cells: the file goes before the function is shortened, its class
    before the line."""
    function = function_name(function)
    where = place(file, line, width, ellipsis) if file else ""
    if not where:
        return middle(function, width, ellipsis)
    if cells(function) + 1 + cells(where) <= width:
        return f"{function} {where}"
    room = width - cells(function) - 1
    number = f":{line}" if line else ""
    if room >= SHORTEST_FILE + cells(number):
        return f"{function} {place(file, line, room, ellipsis)}"
    if number and cells(function) + cells(number) <= width:
        return function + number
    name, resumed = (function.removesuffix(" resumed"), " resumed") if function.endswith(" resumed") else (function, "")
    bare = name.rpartition(".")[2] + resumed
    if number and cells(bare) + cells(number) <= width:  # the line tells more than the class does
        return bare + number
    return middle(function, width, ellipsis)


def marked_id(compile_id: str, generation: int) -> str:
    """A compile id, `0/0`; `0/0 r1` from after the first reset, where Dynamo gives the same ids out again."""
    return f"{clean(compile_id)} r{generation}" if generation else clean(compile_id)


def command(text: str, width: int, ellipsis: str) -> str:
    """A command line in at most `width` cells: where it does not fit, folders go, then the interpreter, then arguments from the
    end on; the script's own name is shortened last, and in its middle."""
    text = clean(text)
    if cells(text) <= width:
        return text
    words = text.split(" ")
    words[0] = os.path.basename(words[0]) or words[0]
    shorter = " ".join(words)
    if cells(shorter) > width and len(words) > 1 and words[0].startswith("python"):
        script = next((at for at in range(1, len(words)) if not words[at].startswith("-")), 1)
        words = [os.path.basename(words[script]) or words[script], *words[script + 1 :]]
        shorter = " ".join(words)
    if cells(shorter) <= width or cells(words[0]) + 2 <= width:
        return cut(shorter, width, ellipsis)
    return middle(words[0], width, ellipsis)


def _keep_end(text: str, end: str, width: int, ellipsis: str) -> str:
    if cells(text) + cells(end) <= width:
        return text + end
    room = width - cells(end)
    if room >= 3:
        return middle(text, room, ellipsis) + end
    return middle(text + end, width, ellipsis)
