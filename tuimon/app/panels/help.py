"""The help page: the panel that has the keys, all keys, and what the words mean."""

from __future__ import annotations

from tuimon.app.details.page import heading, prose
from tuimon.app.details.step import NAMING
from tuimon.app.keymap import ACTIONS
from tuimon.app.keymap.replay import REPLAY
from tuimon.app.keymap.roofline import ROOFLINE
from tuimon.app.panels import PANELS
from tuimon.app.panels.timeline import CAUSES
from tuimon.app.scene import Panel
from tuimon.draw.text import Line, pad
from tuimon.model.slow.rule import rule
from tuimon.model.statistics import RULE

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


def lines(panel: Panel | None, width: int, several: bool = True, slow: str = "", *, replay: bool = False) -> list[Line]:
    """The page, for the panel that has the keys; `several`: of more than one process; `slow`: what makes a step slow; `replay`:
    a recording is played."""
    out: list[Line] = []
    if panel is not None:
        out += [[(f"{panel.number} {panel.title}", "title-focus")], *prose(panel.help, width)]
        if panel.sorts:
            out += prose(f"orders (s): {', '.join(panel.sorts)}", width, "note")
    if replay:
        out += heading("keys: replay (they come before those of the same letter below)")
        for action in REPLAY:
            out += entry(action.shown, action.help, width)
    shown = [action for action in ACTIONS if action.scope != "page" and (several or not action.several)]
    for group in dict.fromkeys(action.group for action in shown):
        out += heading(f"keys: {group}")
        if group == "panels":
            out += entry("1-7", "A panel on the full screen; the same key or esc: back.", width)
        for action in shown:
            if action.group == group:
                out += entry(action.shown, action.help, width)
    out += heading("keys: roofline, while panel 6 has the keys (they come before those of the same letter above)")
    for action in ROOFLINE:
        out += entry(action.shown, action.help, width)
    out += heading("panels")
    for other in PANELS:
        out += entry(str(other.number), other.title, width)
    out += heading("marks of slow steps, by their cause")
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
    first: Line = [("  ", "text"), (pad(key, 13), "key"), *lines[0]]
    return [first, *([("  " + " " * 13, "text"), *line] for line in lines[1:])]
