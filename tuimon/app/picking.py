"""The picker's lines: which processes there are, grouped by job, and what is to be said of the selected one. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tuimon.app.candidate import Candidate
from tuimon.app.panels.frame import PanelLines, fitted, plural
from tuimon.draw import format as fmt
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.names import command
from tuimon.draw.table import Cells, Column, Widths, head_line, layout, note_widths, row_line, window
from tuimon.draw.text import Line, clean, cut, pad, two_ends, wrap

ABOUT_LINES = 3
"""Lines for the selected row; where the terminal has room always so many, or the list would jump."""

LOW = 14
"""Of a terminal with fewer lines, the list gets what it can."""

WHAT_ELSE = (
    ("tuimon run -- python train.py", "start a program and watch it"),
    ("tuimon demo", "see what it looks like"),
    ("tuimon attach ssh://host/PID", "a process of another host"),
)

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

    The processes are in the order in which they are to be shown. A launcher stands for its ranks and has no row of its own.
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
    covered: set[int] = set()
    for one in found:
        group = of.get(one.pid)
        if group not in groups:
            blocks[str(one.pid)] = [Entry(str(one.pid), (one,))]
        elif group not in blocks:
            head = launchers.get(one.parent) if one.parent is not None else None
            if head is not None:
                covered.add(head.pid)
            ranks = [Entry(str(rank.pid), (rank,), None, group) for rank in groups[group]]
            blocks[group] = [Entry(group, tuple(groups[group]), head, group), *ranks]
    shown = [block for block in blocks.values() if block[0].whole or block[0].found[0].pid not in covered]
    shown.sort(key=lambda block: not block[0].chosen)  # stable: a job's rows stay together
    return [row for block in shown for row in block]


def _is_python(one: Candidate) -> bool:
    """Whether a launcher is a Python program: what it starts are parts of one job, which need not hold for a shell."""
    return bool(one.command) and one.command[0].rpartition("/")[2].startswith("python")


def matching(rows: Sequence[Entry[Found]], text: str) -> list[Entry[Found]]:
    """The rows that hold the text."""
    wanted = text.casefold()
    return [row for row in rows if wanted in _text(row).casefold()]


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
    Column("user", "user", 4, flex=1, most=12, snug=True, rank=5),
    Column("gpu", "gpu", 3, right=True, rank=4),
    Column("age", "age", 6, right=True, rank=3),
    Column("python", "python", 6, right=True, rank=6),
    Column("command", "command", 12, flex=8),
)


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
    lines = [_head(found, width)] if height >= 6 else []
    title = "PyTorch processes"
    note = f"filter {clean(view.filter)!r}: {len(shown)} of {len(found or ())}" if view.filter else ""
    lines.append(_rule(title, note, width, glyphs))
    if not shown:
        return fitted(lines + _nothing(found, view, problem, width, height - len(lines)), width, height, glyphs)
    _place(shown, view)
    about = _about(shown[view.at], width, height < LOW, glyphs)
    room = max(1, height - len(lines) - 1 - len(about))
    view.page = max(1, room)
    view.top = window(len(shown), view.at, view.top, room)
    visible = shown[view.top : view.top + room]
    if len(visible) < len(shown):
        lines[-1] = _rule(
            title, f"{view.top + 1}-{view.top + len(visible)} of {len(shown)}" + (note and f"; {note}"), width, glyphs
        )
    cells = [_cells(row, glyphs) for row in visible]
    note_widths(COLUMNS, cells, view.widths)
    placed = layout(COLUMNS, width - 1, view.widths)
    lines.append([(" ", "head"), *head_line(placed, width - 1, None, "", glyphs.ellipsis)])
    for at, row_cells in enumerate(cells, view.top):
        role = "selected" if at == view.at else None
        edge = glyphs.right if at == view.at else " "
        lines.append([(edge, role or "text"), *row_line(placed, row_cells, width - 1, glyphs.ellipsis, role)])
    lines += [[] for _ in range(height - len(about) - len(lines))]
    return fitted(lines + about, width, height, glyphs)


def _place(shown: Sequence[Entry[Found]], view: ListView) -> None:
    """Keep the selection on its row, or where that was; at first it is on the first row."""
    keys = [row.key for row in shown]
    if view.cursor in keys:
        view.at = keys.index(view.cursor)
    else:
        view.at = min(view.at, len(keys) - 1)
        view.cursor = keys[view.at]


def _head(found: Sequence[Entry[Found]] | None, width: int) -> Line:
    question = (
        "which process is to be watched?" if found is None or found else "nothing to watch yet: tuimon run, or tuimon demo"
    )
    left: Line = [(" tuimon", "brand"), (f"   {question}", "text")]
    if found is None:
        right: Line = [("looking", "dim")]
    else:
        able = sum(1 for row in found if row.chosen and not row.whole)
        right = [(f"{able} can be attached to", "good" if able else "dim")]
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
    lines.append([])
    size = max(len(what) for what, _ in WHAT_ELSE)
    for what, meaning in WHAT_ELSE:
        if width >= size + 20:
            lines.append([(" ", "text"), (pad(what, size), "key"), ("  " + meaning, "note")])
        else:
            lines.append([(" ", "text"), (what, "key")])
    return lines[: max(0, room)]


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
