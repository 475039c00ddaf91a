"""A source line in its file, below what Dynamo said of it and what it suggests."""

from __future__ import annotations

import os

from tuimon.app.details.page import fact, prose
from tuimon.app.details.paged import Build, Paged, Source, paged
from tuimon.app.details.source import Excerpt, read_whole, source_line
from tuimon.app.scene import Scene
from tuimon.draw.text import Line, clean
from tuimon.model import Model
from tuimon.model.parts import Boundary


def of_boundary(boundary: Boundary, *, library: bool = False) -> Source | None:
    """The user's line of a boundary, or that of the library which it calls, with all that is to be said of it."""
    file, line = (boundary.user_file, boundary.user_line) if not library else (boundary.file, boundary.line)
    if not file:
        file, line = boundary.file, boundary.line
    if not file or not line:
        return None
    hints = (f"hint: {hint}" for hint in dict.fromkeys(boundary.hints))  # Dynamo repeats some
    said = [boundary.kind or boundary.reason, boundary.explanation, *hints]
    return Source(file, line, boundary.function, tuple(text for text in said if text))


def title(source: Source) -> str:
    """The page's name."""
    return f"source {os.path.basename(source.file) or source.file}:{source.line}"


def build(scene: Scene, source: Source) -> Build:
    """The page. The file is read here, once."""
    excerpt = read_whole(scene, source.file, source.line)
    drawn: dict[tuple[int, str], list[Line]] = {}  # thousands of lines, which nothing but the width changes

    def lines(scene: Scene, width: int) -> list[Line]:
        known = drawn.get((width, scene.glyphs.name))
        if known is None:
            drawn.clear()
            known = [source_line(scene, number, text, number == source.line, width) for number, text in excerpt.lines]
            drawn[width, scene.glyphs.name] = known
        return known

    def page(scene: Scene, width: int) -> Paged:
        head = _head(scene, source, excerpt, width)
        body = lines(scene, width)
        here = next((at for at, (number, _) in enumerate(excerpt.lines) if number == source.line), None)
        copied = f"{source.file}:{source.line}"
        text = dict(excerpt.lines).get(source.line) or _text(scene.model, source)
        if not body:
            body = [
                *([source_line(scene, source.line, text, True, width)] if text else []),
                *prose(excerpt.why_not, width, "note"),
                *(prose("the line above is what the job told of it", width, "note") if text else []),
            ]
        if text:
            copied += f"  {clean(text.strip())}"
        return paged([*head, *body], copied, len(head), len(head) + here if here is not None else None)

    return page


def _head(scene: Scene, source: Source, excerpt: Excerpt, width: int) -> list[Line]:
    out = prose(f"{source.file}:{source.line}", width, "place")
    if source.function:
        out += fact("function", source.function, width, "frame")
    for at, sentence in enumerate(source.head):
        hint = sentence.startswith("hint: ")
        text = f"{scene.glyphs.bullet} {sentence.removeprefix('hint: ')}" if hint else sentence
        out += prose(text, width, "break" if at == 0 else "strong" if hint else "text")
    now, told = dict(excerpt.lines).get(source.line, "").strip(), _text(scene.model, source).strip()
    if now and told and now != told and not now.startswith(told):
        out += prose(f"the file here has another line there than the job told of: {told}", width, "warn")
    attached = scene.model.target.attached_wall_s
    if excerpt.lines and attached is not None and excerpt.modified_s is not None and excerpt.modified_s > attached:
        out += prose("the file has changed since the attach: the lines may not be those that run", width, "warn")
    return [*out, []]


def _text(model: Model, source: Source) -> str:
    """The line as the job told it, where it did."""
    told = model.slowness.text_of(source.file, source.line)
    if told:
        return told
    for one in model.boundaries.values():
        if one.source and (source.file, source.line) in ((one.file, one.line), (one.user_file, one.user_line)):
            return one.source
    return ""
