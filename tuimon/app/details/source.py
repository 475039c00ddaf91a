"""A source line with its surroundings, read from the file as it is now, if it can be read."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tuimon.app.scene import Scene
from tuimon.draw.text import Line, clean, cut
from tuimon.plain import JobFiles, NotPlain, open_plain

MOST_BYTES = 4 << 20
AROUND = 4
MOST_LINES = 2000
"""Of a page: so many before the line, and as many behind it."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file around one of them."""

    lines: tuple[tuple[int, str], ...] = ()
    why_not: str = ""
    """Why there are no lines."""
    modified_s: float | None = None
    """Unix time of the file's last change."""


def read_excerpt(file: str, line: int, around: int = AROUND, files: JobFiles | None = None) -> Excerpt:
    """The lines around `line` (from 1 on). What is no ordinary file is not opened: the job has named it.

    `files`: those of the job, for its own eyes; None: the file is looked for as tuimon itself finds it.
    """
    if not file or file.startswith("<"):
        return Excerpt(why_not="the code has no file")
    try:
        handle = (open_plain if files is None else files.open)(file)
        try:
            facts = os.fstat(handle)
            data = os.read(handle, MOST_BYTES)
        finally:
            os.close(handle)
    except NotPlain as error:
        return Excerpt(why_not=f"{file} {error.sentence}")
    except OSError as error:
        return Excerpt(why_not=f"{file} cannot be read here: {error.strerror or error}")
    text = data.decode("utf-8", errors="replace").split("\n")
    if not 1 <= line <= len(text):
        return Excerpt(why_not=f"{file} has no line {line} now", modified_s=facts.st_mtime)
    first = max(1, line - around)
    last = min(len(text), line + around)
    return Excerpt(tuple((at, text[at - 1]) for at in range(first, last + 1)), modified_s=facts.st_mtime)


def read_here(scene: Scene, file: str, line: int, around: int = AROUND) -> Excerpt:
    """The same of the job's file: of a job on another host, a file of that name here is another one. A recording may be of this
    host or have come here together with the program: whether the file has changed since is said."""
    if scene.host is not None and scene.replay is None and scene.model.target.how != "file":
        return Excerpt(why_not=f"{file or 'the code'} is on {clean(scene.host)}: files of another host are not read")
    return read_excerpt(file, line, around, scene.job_files)


def read_whole(scene: Scene, file: str, line: int) -> Excerpt:
    """The file, as far as a page holds it."""
    return read_here(scene, file, line, MOST_LINES)


def source_line(scene: Scene, number: int, text: str, here: bool, width: int) -> Line:
    """A line of source with its number; the one in question is marked."""
    mark = scene.glyphs.right if here else " "
    body = cut(clean(text.replace("\t", "    ")), max(1, width - 10), scene.glyphs.ellipsis)
    return [(f"  {mark} {number:>5} ", "source-here" if here else "dim"), (body, "source-here" if here else "source")]


def excerpt_lines(scene: Scene, excerpt: Excerpt, line: int, width: int) -> list[Line]:
    """The excerpt as lines, the one in question marked; a file that changed since the attach is said to have."""
    if not excerpt.lines:
        return [[("  " + clean(excerpt.why_not), "note")]]
    out = [source_line(scene, number, text, number == line, width) for number, text in excerpt.lines]
    attached = scene.model.target.attached_wall_s
    if attached is not None and excerpt.modified_s is not None and excerpt.modified_s > attached:
        out.append([("  the file has changed since the attach: the lines may not be those that run", "warn")])
    return out
