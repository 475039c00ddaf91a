"""Events without the model's source: what a recording keeps unless the source is asked for.

What goes is text that somebody wrote into a file: lines of code that a graph break, a guard or a traceback quotes, and what the
job printed. What stays: names of files and functions, line numbers, shapes, types, and values that guards compare with.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tuimon import events as ev

_COMMENT = re.compile(r"\s{2,}# ")
_PLACE = re.compile(r"  # [^#]*:\d+ in .*", re.DOTALL)
_FRAME = re.compile(r'\s*File "')
_BREAKS = ("\n", "\\n")
"""Ends of a line; some texts of torch quote others, with their ends written out."""


def redacted(event: ev.Event) -> ev.Event | None:
    """The event without any source text; None where nothing would be left. Twice is as good as once."""
    change = _CHANGES.get(type(event))
    return event if change is None else change(event)


def guard_text(text: str) -> str:
    """Dynamo's text for a guard that failed, without the line of code behind it and those of the stack; the places stay."""
    first, ending, rest = text.partition("\n")
    comment = _COMMENT.search(first)
    if comment is not None:
        behind = first[comment.start() :].lstrip()
        place = _PLACE.match(f"  {behind[behind.rfind('# ') :]}")
        first = first[: comment.start()] + (place[0] if place else "")
    return first + ending + without_code(rest)


def without_code(text: str) -> str:
    """A text without the lines that a traceback in it quotes: those that are indented, behind one that names a file."""
    for end in _BREAKS:
        if end not in text or 'File "' not in text:
            continue
        kept, quoted = [], False
        for line in text.split(end):
            if _FRAME.match(line):
                quoted = True
            elif not line.startswith(" ") or not line.strip():
                quoted = False
            elif quoted:
                continue
            kept.append(line)
        text = end.join(kept)
    return text


def _broke(event: ev.GraphBroke) -> ev.Event:
    reason, explanation = without_code(event.reason), without_code(event.explanation)
    return replace(event, source="", reason=reason, explanation=explanation, headline=without_code(event.headline))


def _guards(event: ev.GuardsFailed) -> ev.Event:
    return replace(event, failed=tuple((entry, guard_text(text)) for entry, text in event.failed))


def _finished(event: ev.CompileFinished) -> ev.Event:
    failed = None if event.failed is None else without_code(event.failed)
    return replace(event, failed=failed, restart_reasons=tuple(map(without_code, event.restart_reasons)))


def _line(event: ev.Line) -> ev.Event | None:
    return None if event.origin == "job" else event


_CHANGES: dict[type[ev.Event], Callable[[Any], ev.Event | None]] = {
    ev.SourceSeen: lambda _: None,
    ev.GraphBroke: _broke,
    ev.GuardsFailed: _guards,
    ev.CompileFinished: _finished,
    ev.BoundaryAccepted: lambda event: replace(event, source=""),
    ev.Line: _line,
}
