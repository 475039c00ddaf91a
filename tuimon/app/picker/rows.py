"""The picker's lines: which processes there are, grouped by job, and what is to be said of the selected one. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from tuimon.app.filtering import matches
from tuimon.app.panels.frame import PanelLines, fitted, plural
from tuimon.app.picker.candidate import Candidate
from tuimon.draw import format as fmt
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.names import command
from tuimon.draw.table import Cells, Column, Widths, head_line, layout, note_widths, row_line, window
from tuimon.draw.text import Line, clean, cut, pad, two_ends, wrap

ABOUT_LINES = 3
"""Lines for the selected row; where the terminal has room always so many, or the list would jump."""

LOW, TINY = 14, 8
"""Of a terminal with fewer lines, the list gets what it can; below the second all but rows goes."""

WHAT_ELSE = (
    ("tuimon run -- python train.py", "start a program and watch it"),
    ("tuimon demo --tour", "a walk through the screens"),
    ("tuimon attach ssh://host/PID", "a process of another host"),
)

WHAT_HAPPENS = "enter attaches, q leaves; until then nothing is touched"

WHY_NOT = {
    "uid": "other user", "denied": "not allowed", "may-not-write": "not allowed", "seccomp": "sandboxed",
    "seccomp-strict": "sandboxed", "old-python": "Python {python}", "new-python": "Python {python}", "stopped": "stopped",
    "zombie": "has ended", "ended": "has ended", "ending": "is ending", "dead": "has ended", "traced": "debugged",
    "already-attached": "tuimon is in", "arch": "other CPU kind", "platform": "other CPU kind", "self": "is tuimon",
    "not-python": "no Python", "not-found": "Python unknown", "no-symbols": "Python unknown", "free-threaded": "free-threaded",
    "remote-debug-off": "debugging off", "uninterruptible": "hangs", "no-files": "no free files", "launcher": "starts ranks",
    "no-socket-dir": "no socket", "old-kernel": "old kernel",
}  # fmt: skip
"""A refusal's code -> why not, in a word or two; the sentence stands below for the selected row."""

LONGEST_WHY = 18

NOT = "no: "
"""What stands before the command of a row that cannot be attached to, where the column has no room."""

NARROW, LEAST_COMMAND = 70, 16
"""Below so many cells a command may have so few, rather than that a column is left out."""

RANDOM_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What torchrun calls a job that nobody named: no use to a person."""


Found = TypeVar("Found", bound=Candidate)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Found]):
    """One row: a process, or all ranks of a job."""

    key: str
    found: tuple[Found, ...]
    """The processes that it stands for."""
    head: Found | None = None
    """For a job: the process that started its ranks, if there is one."""
    group: str | None = None
    """The key of the job that it is, or belongs to."""

    @property
    def whole(self) -> bool:
        """Whether it is all ranks of a job."""
        return self.key == self.group

    @property
    def chosen(self) -> list[Found]:
        """What is attached to when it is picked: what can be."""
        return [one for one in self.found if one.attachable]


@dataclass(slots=True)
class ListView:
    """How a person looks at the list."""

    cursor: str | None = None
    at: int = 0
    top: int = 0
    page: int = 1
    filter: str = ""
    widths: Widths = field(default_factory=Widths)


def entries(found: Sequence[Found]) -> list[Entry[Found]]:
    """The rows: jobs of several ranks first as a whole, then one by one; what cannot be attached to is last.

    The processes are in the order in which they are to be shown. A launcher stands for what it started, and has no row of its
    own where that is on the list.
    """
    groups: dict[str, list[Found]] = {}
    of: dict[int, str] = {}
    launchers = {one.pid: one for one in found if one.kind == "launcher"}
    for one in found:
        head = launchers.get(one.parent) if one.parent is not None else None
        if one.kind == "job" and (one.rank is not None or (head is not None and _is_python(head))):
            key = f"job {one.parent if one.parent is not None else one.job}"
            groups.setdefault(key, []).append(one)
            of[one.pid] = key
    groups = {key: ranks for key, ranks in groups.items() if sum(one.attachable for one in ranks) > 1}
    blocks: dict[str, list[Entry[Found]]] = {}
    covered = {one.parent for one in found} & {*launchers}
    for one in found:
        group = of.get(one.pid)
        if group not in groups:
            blocks[str(one.pid)] = [Entry(str(one.pid), (one,))]
        elif group not in blocks:
            head = launchers.get(one.parent) if one.parent is not None else None
            ranks = [Entry(str(rank.pid), (rank,), None, group) for rank in groups[group]]
            blocks[group] = [Entry(group, tuple(groups[group]), head, group), *ranks]
    shown = [block for block in blocks.values() if block[0].whole or block[0].found[0].pid not in covered]
    shown.sort(key=lambda block: not block[0].chosen)  # stable: a job's rows stay together
    return [row for block in shown for row in block]


def _is_python(one: Candidate) -> bool:
    """Whether a launcher is a Python program: what it starts are parts of one job, which need not hold for a shell."""
    return bool(one.command) and one.command[0].rpartition("/")[2].startswith("python")


def matching(rows: Sequence[Entry[Found]], text: str) -> list[Entry[Found]]:
    """The rows that the filter lets through."""
    return [row for row in rows if matches(text, _text(row))]


def copied(row: Entry[Found]) -> str:
    """A row as a line of text: the PID, whose it is, what it runs."""
    one = row.head or row.found[0]
    whole = f"{len(row.found)} ranks of {row.group}: " if row.whole else ""
    return f"{whole}pid {one.pid}{f' of {one.user}' if one.user else ''}: {clean(shlex.join(one.command))}"


def _text(row: Entry[Found]) -> str:
    head = (row.head,) if row.head is not None else ()
    words = [name(row)]
    for one in (*row.found, *head):
        words += [str(one.pid), one.user or "", one.job or "", one.container or "", one.kind, shlex.join(one.command)]
    return " ".join(words)


def name(row: Entry[Found]) -> str:
    """`all 8 ranks of llm-7b`, or the command of a process."""
    first = row.found[0]
    if not row.whole:
        kind = "" if first.kind == "job" else f"({first.kind}) "
        return kind + shlex.join(first.command)
    able = len(row.chosen)
    what = "ranks" if all(one.rank is not None for one in row.found) else "processes"
    count = f"all {able} {what}" if able == len(row.found) else f"{able} of {len(row.found)} {what}"
    named = first.job is not None and not RANDOM_NAME.fullmatch(first.job)
    return f"{count} of {first.job if named else program(first.command)}"


def program(words: Sequence[str]) -> str:
    """A command without its interpreter and the folders of what that runs: `train.py --size small`."""
    words = list(words)
    if len(words) > 1 and words[0].rpartition("/")[2].startswith(("python", "pypy")) and not words[1].startswith("-"):
        words = words[1:]
    if words:
        words[0] = words[0].rpartition("/")[2] or words[0]
    return shlex.join(words)


COLUMNS = (
    Column("rank", "ranks", 5, right=True, rank=2),
    Column("pid", "pid", 7, right=True),
    Column("user", "user", 5, flex=1, most=12, snug=True, rank=5),
    Column("gpu", "gpu", 3, right=True, rank=4),
    Column("age", "age", 6, right=True, rank=3),
    Column("python", "python", 6, right=True, rank=6),
    Column("attach", "attach", 6, rank=1),
    Column("command", "command", 27, flex=8),
)


SELDOM: dict[str, Callable[[Entry[Any]], bool]] = {
    "rank": lambda row: any(one.rank is not None for one in row.found),
    "gpu": lambda row: any(one.gpus for one in row.found),
}
"""Columns that are left out where no row has anything in them."""


def attach_words(row: Entry[Found]) -> tuple[str, str]:
    """Whether a row can be attached to, in a word or two, and its role: `ready`, `no torch yet`, `no: other user`."""
    first = row.found[0]
    if row.whole:
        lacking = len(row.found) - len(row.chosen)
        return (f"{lacking} cannot", "warn") if lacking else ("ready", "good")
    if not row.chosen:
        word = WHY_NOT.get(first.code or "", (first.code or "refused").replace("-", " "))
        return f"no: {clean(word.format(python=first.python or 'unknown'))}"[:LONGEST_WHY], "warn"
    return ("no torch yet", "note") if first.has_torch is False else ("ready", "good")


def _cells(row: Entry[Found], glyphs: GlyphSet) -> Cells:
    first = row.found[0]
    role = "text" if row.chosen else "quiet"

    def words(width: int) -> tuple[str, str]:
        if row.whole:
            return cut(clean(name(row)), width, glyphs.ellipsis), "strong"
        if first.kind != "job":
            return cut(clean(name(row)), width, glyphs.ellipsis), role
        indent = "  " if row.group is not None else ""
        return indent + command(name(row), max(0, width - len(indent)), glyphs.ellipsis), role

    if row.whole:
        gpus = sorted({gpu for one in row.found for gpu in one.gpus or ()})
        pid, rank = str(row.head.pid) if row.head is not None else "", "all"
    else:
        gpus = list(first.gpus or ())
        pid, rank = str(first.pid), _rank(first)
    return {
        "rank": (rank, "strong" if row.whole else role),
        "pid": (pid, role),
        "user": (clean(first.user or fmt.UNKNOWN), role),
        "gpu": (_numbers(gpus) or fmt.UNKNOWN, "gpu" if row.chosen else role),
        "age": (fmt.age(max(one.age for one in row.found)), role),
        "python": (first.python or fmt.UNKNOWN, role),
        "attach": attach_words(row),
        "command": words,
    }


def _rank(one: Candidate) -> str:
    if one.rank is None:
        return fmt.UNKNOWN
    return f"{one.rank}/{one.world_size}" if one.world_size is not None else str(one.rank)


def _numbers(gpus: Sequence[int]) -> str:
    """`0`, `0,2`, `0-7`."""
    if len(gpus) > 2 and list(gpus) == list(range(gpus[0], gpus[-1] + 1)):
        return f"{gpus[0]}-{gpus[-1]}"
    return ",".join(map(str, gpus))


def draw(
    found: Sequence[Entry[Found]] | None, view: ListView, width: int, height: int, glyphs: GlyphSet, problem: str = ""
) -> PanelLines:
    """The list as lines, `height` of them; `found` None: the first look is not over yet. `problem`: it went wrong, and how."""
    if width <= 0 or height <= 0:
        return []
    shown = matching(found, view.filter) if found is not None else []
    tiny = height < TINY
    lines = [] if tiny else [_head(found, width)]
    title = "PyTorch processes"
    note = f"filter {clean(view.filter)!r}: {len(shown)} of {len(found or ())}" if view.filter else ""
    lines.append(_rule(title, note, width, glyphs))
    if not shown:
        return fitted(lines + _nothing(found, view, problem, width, height - len(lines)), width, height, glyphs)
    _place(shown, view)
    about = _about(shown[view.at], width, height < LOW, glyphs)
    if tiny:  # a row, and why it cannot be attached to, come before a title
        lines, about = lines[: height - 2], _about_tiny(shown[view.at], width, glyphs)[: height - 1]
    room = max(1, height - len(lines) - (not tiny) - len(about))
    view.page = max(1, room)
    view.top = window(len(shown), view.at, view.top, room)
    visible = shown[view.top : view.top + room]
    if len(visible) < len(shown) and lines:
        lines[-1] = _rule(
            title, f"{view.top + 1}-{view.top + len(visible)} of {len(shown)}" + (note and f"; {note}"), width, glyphs
        )
    cells = [_cells(row, glyphs) for row in visible]
    columns = [column for column in COLUMNS if column.name not in SELDOM or any(map(SELDOM[column.name], found or ()))]
    if width < NARROW:
        columns[-1] = replace(columns[-1], width=LEAST_COMMAND)
    note_widths(columns, cells, view.widths)
    for row in found or ():
        view.widths.see("attach", len(attach_words(row)[0]))  # of all rows: or it would grow while one scrolls
    placed = layout(columns, width - 1, view.widths)
    if not placed.has("attach"):
        cells = [_marked(row, one) for row, one in zip(visible, cells, strict=True)]
    if not tiny:
        lines.append([(" ", "text"), *head_line(placed, width - 1, None, "", glyphs.ellipsis)])
    for at, row_cells in enumerate(cells, view.top):
        role = "selected" if at == view.at else None
        edge = glyphs.right if at == view.at else " "
        lines.append([(edge, role or "text"), *row_line(placed, row_cells, width - 1, glyphs.ellipsis, role)])
    lines += _below(width, height - len(about) - len(lines))
    return fitted(lines + about, width, height, glyphs)


def _marked(row: Entry[Found], cells: Cells) -> Cells:
    """A row whose command says that it cannot be attached to: there is no room for a column that does."""
    told = cells["command"]
    if row.chosen or not callable(told):
        return cells

    def words(width: int) -> tuple[str, str]:
        text, role = told(max(0, width - len(NOT)))
        return (NOT + text)[:width], role

    return {**cells, "command": words}


def _about_tiny(row: Entry[Found], width: int, glyphs: GlyphSet) -> PanelLines:
    """The selected row in a line, where it cannot be attached to: why."""
    if row.chosen:
        return []
    words, role = attach_words(row)
    return [[(" ", "text"), (cut(f"{words}; {clean(row.found[0].why or '')}", max(1, width - 2), glyphs.ellipsis), role)]]


def _place(shown: Sequence[Entry[Found]], view: ListView) -> None:
    """Keep the selection on its row, or where that was; at first it is on the first row."""
    keys = [row.key for row in shown]
    if view.cursor in keys:
        view.at = keys.index(view.cursor)
    else:
        view.at = min(view.at, len(keys) - 1)
        view.cursor = keys[view.at]


def _head(found: Sequence[Entry[Found]] | None, width: int) -> Line:
    question = "which process is to be watched?" if width >= 74 else "which one?"
    if found is not None and not found:
        question = "nothing to watch yet: tuimon run, or tuimon demo"
    left: Line = [(" tuimon", "brand"), (f"   {question}", "text")]
    if found is None:
        right: Line = [("looking", "dim")]
    elif not found:
        right = []  # the question says it
    else:
        able = sum(1 for row in found if row.chosen and not row.whole)
        right = [(f"{able} can be attached to", "good" if able else "dim")]
        cannot = sum(1 for row in found if not row.chosen)
        right += [(f", {cannot} cannot", "dim")] if cannot else []
    return two_ends(left, right, width - 1)


def _rule(title: str, note: str, width: int, glyphs: GlyphSet) -> Line:
    line: Line = [(glyphs.right + " ", "title-focus"), (title + " ", "title-focus")]
    if note:
        line += [(f"{glyphs.separator} ", "rule"), (note + " ", "note")]
    used = sum(len(text) for text, _ in line)
    return [*line, (glyphs.horizontal * max(0, width - used), "rule")]


def _nothing(found: Sequence[Entry[Found]] | None, view: ListView, problem: str, width: int, room: int) -> PanelLines:
    """What to say where there is no row: that one looks, that the filter hides them, or what to do."""
    if problem:
        return [[(" ", "text"), (piece, "warn")] for piece in wrap(clean(problem), width - 2)]
    if found is None:
        return [[(" looking for PyTorch processes", "note")]]
    if view.filter:
        return [[(" nothing matches the filter; esc takes it away", "note")]]
    words = "no PyTorch process here that this user may see; it is looked for every two seconds"
    lines: PanelLines = [[(" ", "text"), (piece, "text")] for piece in wrap(words, width - 2)]
    lines += [[], *_what_else(width)]
    return lines[: max(0, room)]


def _below(width: int, room: int) -> PanelLines:
    """What stands below a list that leaves `room` lines: what the keys do, and what else there is."""
    told: PanelLines = [[(f" {WHAT_HAPPENS}", "note")], [], *_what_else(width)]
    shown = told if room > len(told) else told[:1] if room > 1 else []
    return [*([] for _ in range(max(0, room - len(shown)))), *shown]


def _what_else(width: int) -> PanelLines:
    """What can be done without any of the rows."""
    size = max(len(what) for what, _ in WHAT_ELSE)
    if width < size + 20:
        return [[(" ", "text"), (what, "key")] for what, _ in WHAT_ELSE]
    return [[(" ", "text"), (pad(what, size), "key"), (f"  {meaning}", "note")] for what, meaning in WHAT_ELSE]


def _about(row: Entry[Found], width: int, low: bool, glyphs: GlyphSet) -> PanelLines:
    """The selected row in full: why it cannot be attached to, or the whole command."""
    first = row.found[0]
    most = 1 if low and row.chosen else ABOUT_LINES
    place = f" in container {first.container}" if first.container and first.container != "yes" else ""
    place = place or (" in a container" if first.container else "")
    if row.whole:
        pids = ", ".join(str(one.pid) for one in row.chosen)
        words = f"{plural(len(row.chosen), 'process', 'processes')} on one screen: pids {pids}"
        rest = [f"{one.pid}: {one.why}" for one in row.found if one.why]
        words, role = "; ".join([words, *rest]), "note"
    elif row.chosen:
        words, role = f"{first.pid}{place}: {shlex.join(first.command)}", "note"
    else:
        why = first.why or f"process {first.pid} cannot be attached to"
        words, role = why if str(first.pid) in why else f"{first.pid}: {why}", "warn"
        words += f" ({place.strip()})" if place else ""
    pieces = wrap(clean(words), max(1, width - 2))
    if len(pieces) > most:
        pieces = [*pieces[: most - 1], cut(" ".join(pieces[most - 1 :]), max(1, width - 2), glyphs.ellipsis)]
    pieces += [""] * (0 if low else most - len(pieces))
    return [[(glyphs.horizontal * width, "rule")], *([(" ", "text"), (piece, role)] for piece in pieces)]
