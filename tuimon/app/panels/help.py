"""The help of a screen: all its keys at a glance, what one sees there, each key in a sentence, and what the words mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tuimon.app.action import Action, Scope
from tuimon.app.details.page import heading, prose
from tuimon.app.details.step import NAMING
from tuimon.app.keymap import HEADINGS, TABLES, actions, written
from tuimon.app.keymap.main import ZOOMS
from tuimon.app.panels.frame import PanelLines
from tuimon.app.panels.timeline import CAUSES
from tuimon.app.scene import Panel
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line, cells, pad
from tuimon.model.slow.rule import rule
from tuimon.model.statistics import RULE

GAP = 2
"""Cells between two columns of keys."""

INFERRED = (
    "Steps are told by marks (--step MODULE:FUNCTION, tuimon.step() in the loop), else by the optimizer's step(), else "
    "inferred from the order in which regions and backwards repeat; inferred ones are called so wherever they stand."
)

WORDS = (
    ("frame", "a Python code object that Dynamo compiled, shown as: function file:line"),
    ("[2/1]", "Dynamo's own id of a compilation: frame 2, its compilation 1"),
    ("[2/1 r1]", "the same after the first reset of Dynamo, which gives the same ids out again"),
    ("region", "one compiled graph as it is called at run time, forward or backward"),
    ("graph break", "Dynamo's decision, while compiling, to stop a graph at a line"),
    ("boundary", "the eager stretch that a graph break leaves between two regions, as it is crossed"),
    ("recompile", "a further compilation of a frame that has one, because a guard failed"),
    ("steady step", "a step without a compilation in it; shares are of the time of those"),
    ("-", "not known; never the same as 0"),
)


class Subject(NamedTuple):
    """What is asked for help on: a screen, as it is."""

    scope: Scope
    title: str
    text: tuple[str, ...] = ()
    """What one sees there, a paragraph each."""
    several: bool = False
    """More than one process is watched."""
    replay: bool = False
    """A recording is played."""
    more: Callable[[int, GlyphSet], PanelLines] = lambda width, glyphs: []
    """What there is to say below the keys, from a width."""


def of_panel(panel: Panel, scope: Scope, several: bool, replay: bool, slow: str) -> Subject:
    """The panel that has the keys. `slow`: what makes a step slow."""
    text = (panel.help, f"orders (s): {', '.join(panel.sorts)}") if panel.sorts else (panel.help,)
    return Subject(scope, f"{panel.number} {panel.title}", text, several, replay, lambda width, glyphs: _meanings(width, slow))


def lines(subject: Subject, width: int, glyphs: GlyphSet) -> PanelLines:
    """The help, from the keys at a glance to the meaning of words."""
    here = actions(subject.scope, subject.several, subject.replay)
    out = at_a_glance(here, width)
    if subject.text:
        out += heading("what one sees")
    for part in subject.text:
        out += prose(part, width)
    for group in dict.fromkeys(action.group for action in here):
        out += heading(f"keys: {group}")
        for action in here:
            if action.group == group:
                out += entry(" ".join(written(action)), action.help, width)
    if subject.scope == "main":
        out += heading(f"keys: {HEADINGS['roofline']} (they come before those of the same letter above)")
        for action in TABLES["roofline"]:
            out += entry(" ".join(written(action)), action.help, width)
    return out + subject.more(width, glyphs)


def at_a_glance(here: list[Action], width: int) -> PanelLines:
    """All keys with a word each, in columns. What the key beside it says too (`n N`) is left out, and panels are one."""
    told = {part for action in here if " " in action.shown for part in action.shown.split()}
    words = [(_keys(action), action.label) for action in here if action not in ZOOMS and action.shown not in told]
    if any(action in ZOOMS for action in here):
        words.insert(0, (f"{ZOOMS[0].shown}-{ZOOMS[-1].shown}", "full screen"))
    keys = max(cells(key) for key, _ in words) + 1
    each = keys + max(cells(label) for _, label in words) + GAP
    columns = max(1, (width - 1) // each)
    rows = -(-len(words) // columns)
    out: PanelLines = []
    for row in range(rows):
        line: Line = [(" ", "text")]
        for key, label in words[row::rows]:
            line += [(pad(key, keys), "key"), (pad(label, each - keys), "key-label")]
        out.append(line)
    return out


def _keys(action: Action) -> str:
    """As they are written; a digit is told too, where a letter is the usual key."""
    return " ".join([action.shown, *(key for key in action.keys if key.isdecimal() and key not in action.shown)])


def _meanings(width: int, slow: str) -> PanelLines:
    out = heading("marks of slow steps, by their cause")
    for cause, (mark, _) in CAUSES.items():
        out += entry(mark, cause, width)
    out += heading("words")
    for word, meaning in WORDS:
        out += entry(word, meaning, width)
    out += heading("how numbers are made")
    out += prose(f"{RULE}. Times are of the host: what the job's own thread waited for, not what a device did.", width)
    out += prose(slow or rule(), width)
    out += prose(NAMING, width)
    out += prose(INFERRED, width)
    return out


def entry(key: str, meaning: str, width: int) -> list[Line]:
    """A key or a word, and what it means."""
    lines = prose(meaning, width - 15, "text", indent=0)
    label = pad(key, 13) if cells(key) < 13 else f"{key} "
    first: Line = [("  ", "text"), (label, "key"), *(lines[0] if cells(key) < 13 else [])]
    rest = lines[1:] if cells(key) < 13 else lines
    return [first, *([("  " + " " * 13, "text"), *line] for line in rest)]
