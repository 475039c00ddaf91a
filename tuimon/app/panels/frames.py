"""Frames in words: their entries of the limit, and how many of their calls ran in eager."""

from __future__ import annotations

from tuimon.app.panels.frame import NOT_IN_FILE
from tuimon.draw import format as fmt
from tuimon.model import Model
from tuimon.model.eager import compiled_calls, eager_calls
from tuimon.model.parts import Frame


def entries_words(frame: Frame) -> str:
    """`3/8`: entries in use, of how many the limit allows."""
    return f"{len(frame.entries)}/{frame.limit if frame.limit is not None else '?'}"


def eager_share(model: Model, frame: Frame) -> float | None:
    """The part of the frame's calls since the attach that ran in eager (0 to 1); None where that is not known."""
    eager, _ = eager_calls(model, frame)
    compiled, _ = compiled_calls(model, frame)
    if eager is None or compiled is None or eager + compiled == 0:
        return None
    return eager / (eager + compiled)


def calls_words(model: Model, frame: Frame) -> str:
    """`20 of 60 in eager`, or as much of it as is known."""
    eager, why_eager = eager_calls(model, frame)
    compiled, why_compiled = compiled_calls(model, frame)
    if model.recorded.missing("calls"):
        return NOT_IN_FILE
    if eager is None:
        known = f"{fmt.count(compiled)} compiled, " if compiled else ""
        return f"{known}in eager not known: {why_eager}"
    if compiled is None:
        return f"{fmt.count(eager)} in eager; compiled ones not known: {why_compiled}"
    if not eager:
        return f"{fmt.count(compiled)}, none in eager" if compiled else "no call yet"
    return f"{fmt.count(eager)} of {fmt.count(eager + compiled)} in eager"


def state_words(frame: Frame) -> tuple[str, str]:
    """(a word or two, role): how it stands with the frame; empty where it is as it should be."""
    if frame.refused_compile_id is not None:
        return "at its limit", "bad"
    if frame.skipped:
        return "eager whole", "bad"
    if frame.limit and len(frame.entries) >= frame.limit:
        return "full", "warn"
    if frame.limit and len(frame.entries) >= 0.75 * frame.limit:
        return "near its limit", "warn"
    return "", "text"
